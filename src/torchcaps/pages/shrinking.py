"""What a pruned run saves without its zeros: parameters, operations, bytes and time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchcaps.bench import Effort, time_by_turns
from torchcaps.core import UserError, generator
from torchcaps.prune import Lobster, count_sparsity, measure_size, shrink
from torchcaps.train import load_run, shrink_run

_BATCHES = (1, 128)
_SLOWER = 1.1  # times the time before, from which on a network counts as slower

_FREES_TYPES = "train with pruning.group=type"


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


def shrink_and_measure(source: Path, out: Path, device: str = "cpu", *, force: bool = False) -> Shrunk:
    """Shrink the run in `source` into folder `out`; return sizes, times and how much the answers differ.

    Both networks are measured before anything is written. One that would be slower than the run, or just as
    large, is refused unless `force` is set.
    """
    run = load_run(source, device)
    smaller = shrink(run.model)
    before, after = measure_footprints(run.model, smaller)
    if not force:
        _require_gain(before, after, _advice(run.recipe.pruning))
    shrunk = shrink_run(run, out)
    return Shrunk(
        run=str(out),
        model=shrunk.recipe.model,
        sparsity_total=count_sparsity(run.model)["sparsity_total"],
        before=before,
        after=after,
        largest_difference=_largest_difference(run.model, shrunk.model),
    )


def _advice(pruning: Lobster | None) -> str:
    """What frees more of a network that was trained with these settings."""
    if pruning is None:
        how = f"It was trained without pruning: {_FREES_TYPES}"
    elif pruning.group == "type":
        how = f"It was trained with pruning.group=type: raise pruning.strength above {pruning.strength:g}"
    else:
        how = f"Weights pruned one by one seldom free whole capsules: {_FREES_TYPES}"
    return f"{how}, or shrink all the same with --force"


def _require_gain(before: Footprint, after: Footprint, advice: str) -> None:
    if after.parameters == before.parameters:
        raise UserError(
            f"shrinking would gain nothing: no capsule and no channel of this network is cut off. {advice}"
        )
    slower = [batch for batch, ms in after.ms.items() if ms > _SLOWER * before.ms[batch]]
    if slower:
        times = ", ".join(
            f"{after.ms[batch]:.2f} instead of {before.ms[batch]:.2f} ms for {batch} image(s)"
            for batch in slower
        )
        raise UserError(
            f"shrinking would make this network slower: it keeps {after.parameters / before.parameters:.1%} "
            f"of the parameters and {after.flops / before.flops:.1%} of the FLOPs, and takes {times}; "
            f"nothing was written. {advice}"
        )


def _images(model: nn.Module, batch: int) -> torch.Tensor:
    device, shape = next(model.parameters()).device, model.image_shape
    return torch.randn(batch, *shape, generator=generator(0, "images")).to(device)  # type: ignore[misc]


@torch.no_grad()
def measure_footprints(*models: nn.Module) -> list[Footprint]:
    """Sizes of networks, and their times on the device they are on, measured by turns."""
    device = next(models[0].parameters()).device
    effort = Effort.usual(device)
    times: list[dict[str, float]] = [{} for _ in models]
    for batch in _BATCHES:
        works = [partial(model, _images(model, batch)) for model in models]
        for found, timing in zip(times, time_by_turns(works, device, effort), strict=True):
            found[str(batch)] = round(timing.ms, 3)
    return [
        Footprint(**measure_size(model)._asdict(), ms=ms) for model, ms in zip(models, times, strict=True)
    ]


@torch.no_grad()
def _largest_difference(first: nn.Module, second: nn.Module) -> float:
    images = _images(first, 64)
    return float((first(images).activations - second(images).activations).abs().max())
