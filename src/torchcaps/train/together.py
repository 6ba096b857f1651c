"""Several small runs at once on one device: each alone would leave most of a GPU idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from torchcaps.core.errors import UserError

from .loop import train
from .recipe import Recipe
from .session import Machine
from .step import stream_of_thread

T = TypeVar("T")


def train_together(
    runs: Sequence[tuple[Recipe, Path]],
    machine: Machine | None = None,
    *,
    at_once: int = 4,
    resume: bool = False,
) -> list[dict[str, Any] | Exception]:
    """Train every (recipe, folder) pair, `at_once` side by side; results in order, or the error of a run.

    Each learns what it would learn alone, unless its layers draw random numbers (dropout), which threads
    share. A captured training step is one launch, so the threads hardly ever wait for each other.
    """
    chosen = machine or Machine()

    def one(recipe: Recipe, out: Path) -> dict[str, Any] | Exception:
        try:
            return train(recipe, out, chosen, resume=resume)
        except Exception as error:
            return error

    return side_by_side([partial(one, *run) for run in runs], chosen, at_once=at_once)


def side_by_side(
    jobs: Sequence[Callable[[], T]],
    machine: Machine,
    *,
    at_once: int,
    stop: Callable[[], None] = lambda: None,
) -> list[T]:
    """Start the jobs in order, `at_once` of them at a time, and wait for all; what they returned, in order.

    Each has a thread and, on a GPU, a stream of its own. The first error ends the rest: jobs that have not
    begun are dropped, and `stop` is called so that those under way can end early.
    """
    if at_once < 1:
        raise UserError(f"at_once must be at least 1, got {at_once}")
    if machine.devices > 1:
        raise UserError("runs that train together share one device; use devices=1")
    if at_once == 1:
        return [job() for job in jobs]
    with ThreadPoolExecutor(at_once) as pool:
        pending = [pool.submit(_on_own_stream, job, machine) for job in jobs]
        try:
            return [future.result() for future in pending]
        except BaseException:
            stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_own_stream(job: Callable[[], T], machine: Machine) -> T:
    if machine.device == "cpu" or not torch.cuda.is_available():
        return job()
    stream = stream_of_thread("main")
    with torch.cuda.stream(stream):
        result = job()
    stream.synchronize()
    return result
