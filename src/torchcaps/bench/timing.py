"""How long work takes: medians over repeats, by a wall clock or by events on the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

Work = Callable[[], object]
_GRAPH_WARM_UP = 3  # calls before a capture, in which kernels are compiled and handles made


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How often work is repeated: about `seconds` in all, within limits."""

    warm_ups: int
    seconds: float
    least: int
    most: int

    @classmethod
    def usual(cls, device: torch.device, *, quick: bool = False) -> Effort:
        """Many repeats on a GPU, few on a CPU, where a step takes a second."""
        if device.type == "cuda":
            return cls(
                warm_ups=10,
                seconds=0.2 if quick else 1.0,
                least=5 if quick else 10,
                most=50 if quick else 200,
            )
        return cls(
            warm_ups=1, seconds=0.5 if quick else 3.0, least=2 if quick else 5, most=10 if quick else 50
        )


class Timing(NamedTuple):
    """Median in milliseconds, the distance between the quartiles as a share of it, and the shortest time."""

    ms: float
    spread: float
    repeats: int
    best: float


def summarise(laps: list[float]) -> Timing:
    """Median and spread of single times in milliseconds; quartiles are interpolated linearly."""
    lower, middle, upper = np.quantile(laps, [0.25, 0.5, 0.75]).tolist()
    return Timing(middle, (upper - lower) / middle if middle > 0 else 0.0, len(laps), min(laps))


def time_work(work: Work, device: torch.device, effort: Effort, between: Work | None = None) -> Timing:
    """Warm up, find how many repeats the effort allows, and time them.

    Args:
        work: Called once a repeat.
        device: A GPU is timed by events on its stream, anything else by the wall clock.
        effort: How long this may take.
        between: Called before each repeat, outside of its time.
    """
    laps = cuda_laps if device.type == "cuda" else wall_laps
    _warm_up(work, device, effort)
    (first,) = laps(work, 1, between)
    return summarise(laps(work, _repeats(first, effort), between))


def time_by_turns(works: Sequence[Work], device: torch.device, effort: Effort) -> list[Timing]:
    """Time several works, one repeat of each in turn: what slows the machine for a while meets all alike.

    `effort` is that of each of them.
    """
    laps = cuda_laps if device.type == "cuda" else wall_laps
    for work in works:
        _warm_up(work, device, effort)
    firsts = [laps(work, 1)[0] for work in works]
    repeats = _repeats(max(firsts), effort)
    turns = [[laps(work, 1)[0] for work in works] for _ in range(repeats)]
    return [summarise(list(times)) for times in zip(*turns, strict=True)]


def _repeats(ms: float, effort: Effort) -> int:
    return min(max(round(1000 * effort.seconds / max(ms, 1e-6)), effort.least), effort.most)


def _warm_up(work: Work, device: torch.device, effort: Effort) -> None:
    """Warm up as often as the effort says, but not much longer than the repeats may take."""
    started = time.perf_counter()
    for _ in range(effort.warm_ups):
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if time.perf_counter() - started > effort.seconds:
            return


def wall_laps(
    work: Work,
    repeats: int,
    between: Work | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Milliseconds of each call by the clock `now`, for work that has finished when it returns."""
    laps = []
    for _ in range(repeats):
        if between is not None:
            between()
        started = now()
        work()
        laps.append(1000 * (now() - started))
    return laps


def cuda_laps(work: Work, repeats: int, between: Work | None = None) -> list[float]:
    """Milliseconds of the device between two events around each call; the host waits once, at the end."""
    events: Any = torch.cuda.Event
    pairs = [(events(enable_timing=True), events(enable_timing=True)) for _ in range(repeats)]
    for start, end in pairs:
        if between is not None:
            between()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [float(start.elapsed_time(end)) for start, end in pairs]


def as_graph(work: Work) -> Work:
    """The same work captured as a CUDA graph: calling it replays the kernels with one launch."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_GRAPH_WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


@lru_cache(maxsize=1)
def cold_cache(device: torch.device) -> Work | None:
    """Work that evicts all other data from a GPU's cache, to be called between repeats."""
    if device.type != "cuda":
        return None
    size = 4 * torch.cuda.get_device_properties(device).L2_cache_size
    buffer = torch.empty(size, dtype=torch.uint8, device=device)
    return buffer.zero_
