"""Everything a run holds in memory: devices, model, optimizer, data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchcaps.core import UserError, derive_seed, generator, seeded
from torchcaps.data import Examples
from torchcaps.models import Network, build_model

from ..averaging import AveragedWeights, LearntWeights
from ..evaluate import evaluate
from ..objective import Objective
from ..optimizer import make_optimizer, make_schedule
from ..pipeline import Pipeline
from ..recipe import Recipe, require_memory
from ..source import Splits, source_of
from ..tasks import Evaluation
from ..techniques import AnnealedTraining, PrunedTraining, Technique
from .channels_last import is_better_with_channels_last, use_channels_last
from .checkpoint import Checkpoint, SessionState
from .step import CapturedStep, TrainStep, Work
from .warm_start import FindStart, start_from

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def seeded_model(recipe: Recipe) -> Network:
    """The model of a recipe with its initial weights."""
    require_memory(recipe)
    with seeded(derive_seed(recipe.seed, "weights")):
        return build_model(recipe.model)


def technique_of(recipe: Recipe, network: nn.Module) -> Technique:
    """Annealed or pruned training of a network, or plain training where a recipe asks for neither."""
    if recipe.annealing is not None:
        return AnnealedTraining(recipe.annealing, network)
    if recipe.pruning is not None:
        return PrunedTraining(recipe.pruning, network, recipe.task.leading_metric)
    return Technique()


class Session:
    """One run in memory. Random numbers depend on seed and epoch alone, so any epoch can be repeated."""

    def __init__(
        self,
        fabric: Fabric,
        recipe: Recipe,
        data_dir: Path | None,
        *,
        capture: bool = True,
        is_continued: bool = False,
        find_start: FindStart = Path,
    ) -> None:
        self.fabric, self.recipe, self.task = fabric, recipe, recipe.task
        self.find_start = find_start
        self.network = seeded_model(recipe).to(fabric.device)
        self.source = source_of(recipe, self.network, data_dir)
        self.splits: Splits = self.source.splits(fabric.device)
        self.task.check_model(self.network, self.splits.info)
        self._check_batch()
        if recipe.start_from and not is_continued:  # a checkpoint has all weights: the source may be gone
            start_from(self.network, find_start(recipe.start_from))
        if is_better_with_channels_last(self.network, fabric.device):
            use_channels_last(self.network)
        self._build_training(capture)

    def _check_batch(self) -> None:
        batch, processes = self.recipe.batch_size, self.fabric.world_size
        if batch % processes:
            raise UserError(f"a batch of {batch} cannot be shared by {processes} processes")
        if self.recipe.data.fresh and not self.splits.train.can_be_renewed:
            raise UserError(
                f"recipe.data.fresh: the examples of {self.recipe.data.name} are stored, resized or too many "
                "for the memory, and cannot be drawn anew; set data.fresh=false, or data.limit lower"
            )

    def _build_training(self, capture: bool) -> None:
        fabric, recipe, device = self.fabric, self.recipe, self.fabric.device
        self.pipeline = Pipeline(recipe.data, self.splits.info)
        self.objective = Objective.of_network(self.network, recipe.loss, device)
        self.optimizer: Optimizer = make_optimizer(self.network, recipe.optim, device)
        compiled = cast(nn.Module, torch.compile(self.network)) if recipe.compile else self.network
        self.model: nn.Module
        self.model, optimizer = fabric.setup(compiled, self.optimizer)
        self.steps_per_epoch = len(self._batches(0))
        self.schedule = make_schedule(
            self.optimizer, recipe.optim, steps=self.steps_per_epoch, epochs=recipe.epochs
        )
        self.learning_rate = recipe.optim.learning_rate  # of the last step of an epoch
        self.weights = LearntWeights(self.model, self.network)
        if recipe.optim.average:
            self.weights = AveragedWeights(self.network, recipe.optim.average)
        self.technique = technique_of(recipe, self.network)
        train = self.splits.train
        is_captured = capture and device.type == "cuda" and fabric.world_size == 1 and train.is_in_memory
        self.step: TrainStep = (CapturedStep if is_captured else TrainStep)(
            fabric,
            self.model,
            optimizer,
            work=Work(self.task, train, self.pipeline, self.objective),
            technique=self.technique,
            follow=self.weights.follow,
            clip=recipe.optim.clip,
        )

    def evaluate(
        self, examples: Examples, on_images: Callable[[int], None] = lambda images: None
    ) -> Evaluation:
        """Evaluate the model that is judged on a split; `on_images` is told the size of each batch.

        All processes get what the first one found: rounding, and the batch statistics in an average, differ,
        and what follows from the numbers must not.
        """
        model = self.weights.judged
        found = evaluate(model, examples, self.task, self.pipeline, self.objective, on_images=on_images)
        return self.fabric.broadcast(found)

    def use(self, state: dict[str, Tensor]) -> None:
        """Replace the weights of the network, and of their average where there is one."""
        self.network.load_state_dict(state)
        self.weights.use(state)

    def state(self) -> SessionState:
        """What a checkpoint holds of the session."""
        return {
            "model": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "technique": self.technique.state(),
            **self.weights.state(),
        }

    def restore(self, state: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.network.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.weights.restore(state)
        self.schedule.load_state_dict(state["schedule"])
        self.technique.restore(state["technique"])

    def reset_optimizer(self) -> None:
        """Forget the optimizer's moments, in place: a captured step keeps its buffers."""
        for state in self.optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()

    def epoch(self, number: int) -> Iterator[Tensor]:
        """Start an epoch: seed all random streams, then yield the batches of indices.

        Each is to be followed by `step` and `advance`.
        """
        recipe = self.recipe
        with seeded(derive_seed(recipe.seed, "layers", number)):
            pass  # layers that draw, such as dropout, do so from here on
        if recipe.data.fresh:
            self.splits.train.renew(generator(recipe.seed, "fresh", number))
        self.step.start_epoch(derive_seed(recipe.seed, "augment", number))
        self.objective.start_epoch(number)
        self.technique.start_epoch(number)
        self.model.train()
        batches = self._batches(number)
        for step, batch in enumerate(batches, start=1):
            if not self.splits.train.is_in_memory:  # files are read while the network learns
                self.splits.train.expect(torch.cat(batches[step - 1 : step + 1]))
            if step == len(batches):
                self.learning_rate = float(self.optimizer.param_groups[0]["lr"])
            yield batch

    def advance(self) -> None:
        """Follow a step: set the learning rate of the next one."""
        self.schedule.step()
        self.weights.count_step()

    def _batches(self, number: int) -> list[Tensor]:
        recipe = self.recipe
        random = generator(recipe.seed, "order", number)
        per_place = recipe.data.images_per_place
        batches = self.task.batches(self.splits.train, recipe.batch_size, per_place, random)
        return list(torch.stack(batches).to(self.fabric.device))
