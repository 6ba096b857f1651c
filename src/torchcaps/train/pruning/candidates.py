"""Pruned versions of one network, adapted and scored on the data it was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from torchcaps.core import UserError, derive_seed, generator, require_choice
from torchcaps.data import Examples
from torchcaps.models import Network, OnTrunk
from torchcaps.prune import (
    Drawn,
    Target,
    TrunkCost,
    draw_widths,
    even_widths,
    fresh_statistics,
    prunable_trunk,
    random_channels,
    remove_channels,
    strongest_channels,
)

from ..evaluate import evaluate
from ..loop import use_channels_last
from ..objective import Objective
from ..pipeline import Pipeline
from ..run import Run
from ..tasks import Evaluation

if TYPE_CHECKING:
    from lightning.fabric import Fabric


@dataclass(frozen=True, kw_only=True)
class StructuredPruning:
    """How channels are chosen.

    Args:
        method: "eagleeye" draws a ratio for each group and keeps the best of several candidates; "l1" takes
            one ratio for all; "random" too, and does not look at the filters. All three adapt batch norms.
        flops: Share of the trunk's multiply-adds that is kept.
        candidates: How many are drawn and scored; "l1" and "random" have one.
        batches: Training batches from which a candidate's batch norms are estimated.
        batch_size: Images in each.
        multiple: What widths are multiples of, as in `Target`.
        seed: Of the draws and of those batches.
    """

    method: Literal["eagleeye", "l1", "random"] = "eagleeye"
    flops: float = 0.5
    candidates: int = 50
    batches: int = 100
    batch_size: int = 128
    multiple: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        require_choice("method", self.method, ("eagleeye", "l1", "random"))
        for key in ("candidates", "batches", "batch_size"):
            if getattr(self, key) < 1:
                raise UserError(f"{key} must be at least 1, got {getattr(self, key)}")


def plan_candidates(model: nn.Module, settings: StructuredPruning) -> tuple[TrunkCost, Drawn]:
    """What the trunk costs, and the widths to try; a target that cannot be met is an error."""
    if not isinstance(model, OnTrunk):
        raise UserError(
            f"structured pruning takes a network on a trunk, such as resnet50_classifier, "
            f"not {type(model).__name__}"
        )
    cost = TrunkCost(model.get_submodule("trunk"), model.config.image_size)
    target = Target(share=settings.flops, last=model.least_channels, multiple=settings.multiple)
    if settings.method == "eagleeye":
        return cost, draw_widths(cost, target, settings.candidates, settings.seed)
    return cost, Drawn([even_widths(cost, target)], 1, 0.0, target.ratio_limit, False)


class Candidates:
    """Builds, adapts and scores pruned versions of a run's network; several at once give the same."""

    def __init__(
        self, fabric: Fabric, run: Run, settings: StructuredPruning, data_dir: Path | None = None
    ) -> None:
        self.fabric, self.model, self.settings, self.task = fabric, run.model, settings, run.task
        self.splits = run.source(data_dir=data_dir).splits(fabric.device)
        self.pipeline = Pipeline(run.recipe.data, self.splits.info)
        self.objective = Objective.of_network(run.model, run.recipe.loss, fabric.device)

    def score(self, widths: Sequence[tuple[int, ...]]) -> list[float]:
        """The leading metric of each on the validation split, which is held out of the training images."""
        models, leading = self.adapted(widths), self.task.leading_metric
        return [self.evaluate(model, self.splits.validation).value_of(leading) for model in models]

    def evaluate(self, model: nn.Module, data: Examples) -> Evaluation:
        """Loss and metrics on a split."""
        with self.fabric.autocast(), _without_tuning():
            return evaluate(model, data, self.task, self.pipeline, self.objective)

    @torch.no_grad()
    def adapted(self, widths: Sequence[tuple[int, ...]]) -> list[Network]:
        """The network with each of these widths, its batch norms estimated anew on the same batches."""
        models = [self._prune(chosen) for chosen in widths]
        with ExitStack() as stack:
            stack.enter_context(self.fabric.autocast())
            stack.enter_context(_without_tuning())
            for model in models:
                stack.enter_context(fresh_statistics(model))
            for inputs in self._batches():
                _show(models, inputs)
        return models

    def _prune(self, widths: tuple[int, ...]) -> Network:
        trunk = prunable_trunk(self.model.get_submodule("trunk"))
        if self.settings.method == "random":
            kept = random_channels(trunk, widths, generator(self.settings.seed, "channels"))
        else:
            kept = strongest_channels(trunk, widths)
        model = remove_channels(self.model, kept)
        if self.fabric.device.type == "cuda":
            use_channels_last(model)
        return model

    def _batches(self) -> Iterator[Tensor]:
        settings, images = self.settings, self.splits.train
        chosen = generator(settings.seed, "adapt")
        changes = torch.Generator(self.fabric.device)
        changes.manual_seed(derive_seed(settings.seed, "augment"))
        for _ in range(settings.batches):
            indices = torch.randint(len(images), (settings.batch_size,), generator=chosen)
            yield self.pipeline.for_training(images, indices.to(self.fabric.device), changes).inputs


@contextmanager
def _without_tuning() -> Iterator[None]:
    """Switch off the search for the fastest convolutions: every candidate has its own sizes."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _show(models: Sequence[nn.Module], inputs: Tensor) -> None:
    if inputs.device.type != "cuda":
        for model in models:
            model(inputs)
        return
    # each model has its own stream: one alone would leave most of the device idle
    here, streams = torch.cuda.current_stream(), _side_streams(len(models))
    for model, stream in zip(models, streams, strict=True):
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            model(inputs)
    for stream in streams:
        here.wait_stream(stream)


@lru_cache
def _side_streams(count: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream() for _ in range(count)]  # type: ignore[no-untyped-call]
