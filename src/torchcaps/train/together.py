"""Several small runs at once on one device: each alone would leave most of a GPU idle."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from torchcaps.core.errors import UserError

from .loop import train
from .recipe import Recipe
from .session import Machine


def train_together(
    runs: Sequence[tuple[Recipe, Path]],
    machine: Machine | None = None,
    *,
    at_once: int = 4,
    resume: bool = False,
) -> list[dict[str, Any] | Exception]:
    """Train every (recipe, folder) pair, `at_once` side by side; results in order, or the error of a run.

    Each run has a thread and, on a GPU, a stream of its own; it learns what it would learn alone, unless its
    layers draw random numbers (dropout), which threads share. A captured training step is one launch, so
    the threads hardly ever wait for each other.
    """
    if at_once < 1:
        raise UserError(f"at_once must be at least 1, got {at_once}")
    machine = machine or Machine()
    if machine.devices > 1:
        raise UserError("runs that train together share one device; use devices=1")

    def one(run: tuple[Recipe, Path]) -> dict[str, Any] | Exception:
        try:
            return _train_on_own_stream(*run, machine, resume)
        except Exception as error:
            return error

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, runs))


def _train_on_own_stream(recipe: Recipe, out: Path, machine: Machine, resume: bool) -> dict[str, Any]:
    if machine.device == "cpu" or not torch.cuda.is_available():
        return train(recipe, out, machine, resume=resume)
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        result = train(recipe, out, machine, resume=resume)
    stream.synchronize()
    return result
