"""What a pruned run saves once its zeros are gone: parameters, operations, bytes and time."""

from __future__ import annotations

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


def shrink_and_measure(source: Path, out: Path, device: str = "cpu") -> dict[str, Any]:
    """Shrink the run in `source` into folder `out`; sizes and times of both, and how their answers differ."""
    before = load_run(source, device)
    after = shrink_run(before, out)
    return {
        "run": str(out),
        "model": after.recipe.model,
        "sparsity_total": count_sparsity(before.model)["sparsity_total"],
        "before": _describe(before.model),
        "after": _describe(after.model),
        "largest_difference": _largest_difference(before.model, after.model),
    }


def _images(model: Any, batch: int) -> torch.Tensor:
    device = next(model.parameters()).device
    return torch.randn(batch, *model.image_shape, generator=generator(0, "images")).to(device)


@torch.no_grad()
def _describe(model: nn.Module) -> dict[str, Any]:
    device = next(model.parameters()).device
    effort = Effort.usual(device, quick=True)
    times = {}
    for batch in _BATCHES:
        work = partial(model, _images(model, batch))
        times[str(batch)] = round(time_work(work, device, effort).ms, 3)
    return {**measure_size(model)._asdict(), "ms": times}


@torch.no_grad()
def _largest_difference(first: nn.Module, second: nn.Module) -> float:
    images = _images(first, 64)
    return float((first(images).activations - second(images).activations).abs().max())
