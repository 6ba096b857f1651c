"""Everything a run holds in memory: devices, model, optimizer, data."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchcaps.core.errors import UserError
from torchcaps.core.seeding import derive_seed, generator
from torchcaps.models import Network, create_model
from torchcaps.prune import Pull, prunable_weights

from .annealing import Iterations, set_iterations
from .objective import Objective
from .pipeline import Pipeline, Splits, load_splits
from .recipe import Recipe
from .start import start_from
from .step import CapturedStep, TrainStep, learning_rate, make_optimizer, set_learning_rate

_SEEDING = threading.Lock()  # initial weights come from the global generator, which threads share

Precision = Literal["32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a run takes place; none of it changes what is learnt beyond rounding.

    Several devices do where a network has batch norms: each has the statistics of its own share of a batch.
    """

    device: str = "auto"
    devices: int = 1
    precision: Precision = "32"
    data_dir: Path | None = None
    tune_convolutions: bool = True  # time the algorithms for each size: seconds that a short run never earns


def check_machine(machine: Machine) -> None:
    """Raise where this computer cannot do what `machine` asks."""
    known = ("auto", "cpu", "cuda", "mps")
    if machine.device not in known:
        raise UserError(f"device must be one of {', '.join(known)}, got {machine.device!r}")
    if machine.precision not in ("32", "bf16"):
        raise UserError(f"precision must be 32 or bf16, got {machine.precision!r}")
    is_there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not is_there.get(machine.device, True):
        name = machine.device.upper()
        raise UserError(
            f"this machine has no {name} device that PyTorch can use; leave --device at auto or cpu"
        )


def launch(machine: Machine) -> Any:
    """Lightning's Fabric on the devices chosen, the other processes started, if any."""
    from lightning.fabric import Fabric  # only here: it takes seconds, and who only predicts needs none

    check_machine(machine)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)  # it would announce each setting
    if machine.precision == "bf16":
        torch.set_float32_matmul_precision("high")  # products of the routing in TF32, its sums in float32
    # Batches keep their size, so that the fastest convolution is looked for once. Not beside other runs: the
    # search frees memory, and that breaks a capture under way in another thread.
    is_alone = threading.current_thread() is threading.main_thread()
    torch.backends.cudnn.benchmark = is_alone and machine.tune_convolutions
    fabric = Fabric(
        accelerator=machine.device,
        devices=machine.devices,
        strategy="ddp" if machine.devices > 1 else "auto",
        precision="bf16-mixed" if machine.precision == "bf16" else "32-true",
    )
    fabric.launch()
    return fabric


def model_of(recipe: Recipe, classes: int) -> Network:
    """The model of a recipe with its initial weights; the number of classes must be that of the data."""
    options = dict(recipe.model)
    with _SEEDING:
        torch.manual_seed(derive_seed(recipe.seed, "weights"))
        model = create_model(options.pop("name"), **options)
    built_for = model.config.num_classes
    if built_for != classes:
        raise UserError(
            f"model {recipe.model['name']} has {built_for} classes, dataset {recipe.data.name} {classes}; "
            f"set model.num_classes={classes}"
        )
    return model


def use_channels_last(network: nn.Module) -> None:
    """Give convolutions the memory layout that tensor cores like; capsule matrices keep theirs."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class Session:
    """One run in memory. Random numbers depend on seed and epoch alone, so any epoch can be repeated."""

    def __init__(self, fabric: Any, recipe: Recipe, data_dir: Path | None, *, capture: bool = True) -> None:
        self.fabric, self.recipe = fabric, recipe
        self.splits: Splits = load_splits(recipe.data, data_dir, fabric.device)
        self.pipeline = Pipeline(recipe.data, self.splits.info)
        if recipe.batch_size % fabric.world_size:
            raise UserError(
                f"a batch of {recipe.batch_size} cannot be shared by {fabric.world_size} processes"
            )
        if recipe.batch_size > len(self.splits.train):
            raise UserError(
                f"batch_size {recipe.batch_size} is more than the {len(self.splits.train)} training images"
            )
        self.network = model_of(recipe, self.splits.info.num_classes).to(fabric.device)
        if recipe.start_from:
            start_from(self.network, Path(recipe.start_from))
        if fabric.device.type == "cuda":
            use_channels_last(self.network)
        has_decoder = getattr(self.network, "decoder", None) is not None
        self.objective = Objective(recipe.loss, has_decoder=has_decoder, device=fabric.device)
        self.optimizer: Optimizer = make_optimizer(self.network, recipe.optim, fabric.device)
        compiled: Any = torch.compile(self.network) if recipe.compile else self.network
        self.model: Any
        self.model, optimizer = fabric.setup(compiled, self.optimizer)
        self.pull = self._build_pull()
        is_captured = capture and fabric.device.type == "cuda" and fabric.world_size == 1
        self.step: TrainStep = (CapturedStep if is_captured else TrainStep)(
            fabric,
            self.model,
            optimizer,
            objective=self.objective,
            pipeline=self.pipeline,
            data=self.splits.train,
            pull=self.pull,
        )

    def _build_pull(self) -> Pull | None:
        settings = self.recipe.pruning
        return None if settings is None else Pull(prunable_weights(self.network, settings.layers), settings)

    def set_iterations(self, iterations: Iterations, pattern: str) -> None:
        """Route with another number of iterations from now on."""
        set_iterations(self.network, iterations, pattern)
        self.step.forget_graph()

    def reset_optimizer(self) -> None:
        """Forget Adam's moments, in place: a captured step keeps its buffers."""
        for state in self.optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in the training split; the rest is left out, another rest each epoch."""
        return len(self.splits.train) // self.recipe.batch_size

    def start_epoch(self, epoch: int) -> Iterator[Tensor]:
        """Put every random stream at the start of `epoch`; its batches of indices, the rate set for each."""
        recipe = self.recipe
        with _SEEDING:
            torch.manual_seed(derive_seed(recipe.seed, "layers", epoch))
        self.step.start_epoch(derive_seed(recipe.seed, "augment", epoch))
        self.objective.start_epoch(epoch)
        if self.pull is not None:
            self.pull.start_epoch(epoch)
        self.model.train()
        order = torch.randperm(len(self.splits.train), generator=generator(recipe.seed, "order", epoch))
        batches = torch.split(order.to(self.fabric.device), recipe.batch_size)[: self.steps_per_epoch]
        for step, indices in enumerate(batches, start=epoch * self.steps_per_epoch):
            set_learning_rate(self.optimizer, learning_rate(recipe.optim, epoch, step))
            yield indices
