"""Several small runs at once on one device: each alone would leave most of a GPU idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from torchcaps.core import UserError

from ..machine import Machine
from .step import stream_of_thread

T = TypeVar("T")


def side_by_side(
    jobs: Sequence[Callable[[], T]],
    machine: Machine,
    *,
    at_once: int,
    stop: Callable[[], None] = lambda: None,
) -> list[T]:
    """Start the jobs in order, `at_once` at a time, wait for all, and return their results in order.

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
            ended = wait(pending, return_when=FIRST_EXCEPTION).done
            for future in sorted(ended, key=pending.index):
                future.result()  # raises its error, while jobs that began earlier are still under way
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
