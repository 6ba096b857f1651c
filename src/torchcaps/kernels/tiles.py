"""Tiles of a CPU path, each worked on by one thread.

An operation on a tile takes some ten microseconds: divided among threads, it would end thousands of times a
step with a wait for the slowest, for milliseconds where another program has a core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch

Tile = TypeVar("Tile")
Result = TypeVar("Result")


def work_side_by_side(work: Callable[[Sequence[Tile]], Result], tiles: Sequence[Tile]) -> list[Result]:
    """`work` of as many shares of the tiles as PyTorch has threads, in the order of the tiles.

    Fewer tiles than threads are one share, whose operations are divided among the threads as usual.
    """
    shares, threads = _shares(tiles), torch.get_num_threads()
    if len(shares) == 1:
        return [work(tiles)]
    is_inference = torch.is_inference_mode_enabled()

    def work_as_here(share: Sequence[Tile]) -> Result:  # such modes belong to a thread
        with torch.inference_mode(is_inference), torch.no_grad():
            return work(share)

    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work_as_here, shares))
    finally:
        torch.set_num_threads(threads)  # what a new thread begins with; this one still has it


def compute_side_by_side(work: Callable[[Sequence[Tile]], Result], tiles: Sequence[Tile]) -> list[Result]:
    """As `work_side_by_side`, for work that calls no operation of PyTorch: its threads need no settings.

    One share is worked on here, which costs less than a wait for one more thread.
    """
    *others, own = _shares(tiles)
    if not others:
        return [work(own)]
    with ThreadPoolExecutor(len(others)) as pool:
        results = pool.map(work, others)
        last = work(own)
        return [*results, last]


def _shares(tiles: Sequence[Tile]) -> list[Sequence[Tile]]:
    threads = torch.get_num_threads()
    if threads == 1 or len(tiles) < threads:
        return [tiles]
    bounds = [len(tiles) * number // threads for number in range(threads + 1)]
    return [tiles[first:last] for first, last in pairwise(bounds)]
