"""What a pruned run saves without its zeros: parameters, operations, bytes and time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchcaps.bench import Effort, time_work
from torchcaps.core.seeding import generator
from torchcaps.prune import count_sparsity, measure_size
from torchcaps.train import load_run, shrink_run

_BATCHES = (1, 128)


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What a network costs; `ms` is the time of a forward pass by the number of images."""

    parameters: int
    flops: int
    bytes: int
    ms: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """A run before and after its zeros were removed.

    Attributes:
        run: The folder of the new run, and `model` the model of its recipe.
        sparsity_total: Zeros among all parameters before.
        largest_difference: Between the activations of both on random images.
    """

    run: str
    model: dict[str, Any]
    sparsity_total: float
    before: Footprint
    after: Footprint
    largest_difference: float


def shrink_and_measure(source: Path, out: Path, device: str = "cpu") -> Shrunk:
    """Shrink the run in `source` into folder `out`; sizes and times of both, and how their answers differ."""
    before = load_run(source, device)
    after = shrink_run(before, out)
    return Shrunk(
        run=str(out),
        model=after.recipe.model,
        sparsity_total=count_sparsity(before.model)["sparsity_total"],
        before=_measure(before.model),
        after=_measure(after.model),
        largest_difference=_largest_difference(before.model, after.model),
    )


def _images(model: nn.Module, batch: int) -> torch.Tensor:
    device, shape = next(model.parameters()).device, model.image_shape
    return torch.randn(batch, *shape, generator=generator(0, "images")).to(device)  # type: ignore[misc]


@torch.no_grad()
def _measure(model: nn.Module) -> Footprint:
    device = next(model.parameters()).device
    effort = Effort.usual(device, quick=True)
    times = {}
    for batch in _BATCHES:
        work = partial(model, _images(model, batch))
        times[str(batch)] = round(time_work(work, device, effort).ms, 3)
    return Footprint(**measure_size(model)._asdict(), ms=times)


@torch.no_grad()
def _largest_difference(first: nn.Module, second: nn.Module) -> float:
    images = _images(first, 64)
    return float((first(images).activations - second(images).activations).abs().max())
