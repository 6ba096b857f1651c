"""Launches of a convolution without padding on CUDA."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from triton import cdiv

from ..launch import processors, shared_memory
from .kernels import add_slots_kernel, convolve_kernel, grad_bias_kernel, grad_maps_kernel

_OF_HOPPER = 200 << 10  # bytes that a program may share there, and not on other GPUs
_MOST_SLOTS = 12
_SLOT_COST = 0.03  # of writing and adding the slot of a tile, relative to the sum over a window
_PLACES_OF_SLOT = 128  # of the bias


class _Tile(NamedTuple):
    """Rows and channels of a program's result, the length of a step, and how it is run."""

    rows: int
    channels: int
    step: int
    stages: int = 3
    warps: int = 8


class _Convolution(NamedTuple):
    """Sizes of a convolution without padding."""

    batch: int
    height: int
    width: int
    channels: int
    out: int
    side: int
    stride: int

    @classmethod
    def of(cls, maps: Tensor, weight: Tensor, stride: int) -> _Convolution:
        """The sizes of maps `[batch, channels, height, width]` and kernels `[out, channels, side, side]`."""
        batch, channels, height, width = maps.shape
        return cls(batch, height, width, channels, weight.shape[0], weight.shape[2], stride)

    @property
    def rows(self) -> int:
        """Height of the result."""
        return (self.height - self.side) // self.stride + 1

    @property
    def columns(self) -> int:
        """Width of the result."""
        return (self.width - self.side) // self.stride + 1

    @property
    def places(self) -> int:
        """Places of all results of a batch."""
        return self.batch * self.rows * self.columns

    @property
    def constants(self) -> dict[str, int]:
        """What the kernels are compiled for."""
        return {"C": self.channels, "OUT": self.out, "SIDE": self.side, "STRIDE": self.stride}


def convolve(maps: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
    """The convolution, with channels last in memory."""
    sizes = _Convolution.of(maps, weight, stride)
    maps, weight = _channels_last(maps), _channels_last(weight)
    tile = _tile(maps.device, sizes.channels)
    tiles = cdiv(sizes.places, tile.rows) * cdiv(sizes.out, tile.channels)
    steps = sizes.side * sizes.side * sizes.channels // tile.step
    of_slot = cdiv(steps, min(steps, _best_slots(tiles, processors(maps.device))))
    slots = cdiv(steps, of_slot)
    partial = maps.new_empty(slots, sizes.places, sizes.out, dtype=torch.float32)
    result = maps.new_empty(sizes.batch, sizes.rows, sizes.columns, sizes.out)
    with torch.cuda.device_of(maps):
        convolve_kernel[(tiles, slots)](
            maps,
            weight,
            partial,
            sizes.places,
            sizes.height,
            sizes.width,
            sizes.rows,
            sizes.columns,
            of_slot,
            **sizes.constants,
            PLACES=tile.rows,
            CHANNELS=tile.channels,
            STEP=tile.step,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        add_slots_kernel[(cdiv(result.numel(), 1024),)](
            partial,
            partial if bias is None else bias,
            result,
            result.numel(),
            slots,
            OUT=sizes.out,
            SIZE=1024,
            BIAS=bias is not None,
            num_warps=4,
        )
    return result.permute(0, 3, 1, 2)


def grad_of_maps(grad: Tensor, weight: Tensor, maps: Tensor, stride: int) -> Tensor:
    """The gradient of `maps`, of which only the shape is read, from that of the convolution."""
    sizes = _Convolution.of(maps, weight, stride)
    grad, weight = _channels_last(grad), _channels_last(weight)
    tile = _tile(grad.device, sizes.out)
    order = _by_work(sizes.height, sizes.width, sizes.side, stride, grad.device)
    result = grad.new_empty(sizes.batch, sizes.height, sizes.width, sizes.channels)
    tiles = sizes.height * sizes.width * cdiv(sizes.channels, tile.channels)
    with torch.cuda.device_of(grad):
        grad_maps_kernel[(tiles, cdiv(sizes.batch, tile.rows))](
            grad,
            weight,
            result,
            order,
            sizes.batch,
            sizes.height,
            sizes.width,
            sizes.rows,
            sizes.columns,
            **sizes.constants,
            SAMPLES=tile.rows,
            CHANNELS=tile.channels,
            STEP=tile.step,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    return result.permute(0, 3, 1, 2)


def grad_of_bias(grad: Tensor) -> Tensor:
    """The sum of `grad` over samples and places, in float32."""
    batch, out, rows, columns = grad.shape
    grad, places = _channels_last(grad), batch * rows * columns
    partial = grad.new_empty(cdiv(places, _PLACES_OF_SLOT), out, dtype=torch.float32)
    with torch.cuda.device_of(grad):
        grad_bias_kernel[(len(partial), cdiv(out, 64))](
            grad, partial, places, _PLACES_OF_SLOT, OUT=out, PLACES=32, CHANNELS=64, num_warps=4
        )
    return partial.sum(0)


def _channels_last(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1).contiguous()


def _tile(device: torch.device, channels: int) -> _Tile:
    """The tile that was fastest on an H200, and one that fits every GPU; `channels` are summed over."""
    most = 64 if (is_large := shared_memory(device) >= _OF_HOPPER) else 32
    step = next(step for step in (most, 32, 16) if channels % step == 0)
    return _Tile(128, 256 if is_large else 128, step)


@cache
def _best_slots(tiles: int, at_once: int) -> int:
    """Into how many slots a sum is divided so that `at_once` processors end together."""

    def time(slots: int) -> float:
        return cdiv(tiles * slots, at_once) / slots + _SLOT_COST * slots * tiles / at_once

    return min(range(1, _MOST_SLOTS + 1), key=time)


@cache  # a captured step reads it again
def _by_work(height: int, width: int, side: int, stride: int, device: torch.device) -> Tensor:
    """The places of a map, those first that most windows see: no program begins a long sum last."""

    def windows(place: int, size: int) -> int:
        return min((size - side) // stride, place // stride) - max(0, (place - side + stride) // stride) + 1

    work = [windows(y, height) * windows(x, width) for y in range(height) for x in range(width)]
    order = sorted(range(len(work)), key=lambda place: -work[place])
    return torch.tensor(order, dtype=torch.int32, device=device)
