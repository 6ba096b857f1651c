"""The least time that work can take: its operations and bytes over the rates this device reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import prod
from typing import Literal, NamedTuple

import torch

from torchcaps.core import sketching
from torchcaps.inspection import count_flops, count_parameters
from torchcaps.models import create_model

from .timing import Effort, time_work

Precision = Literal["32", "bf16"]
_FLOAT = 4  # bytes
_ADAM_PASSES = 7  # reads gradient, weight and two moments, writes the last three


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """Rates measured on this device; a copy counts bytes read and written, None is a unit it lacks."""

    copy_gb_s: float
    matmul_tflops_fp32: float
    matmul_tflops_tf32: float | None
    matmul_tflops_bf16: float

    def as_json(self) -> dict[str, float | None]:
        """Plain numbers."""
        return asdict(self)

    def tflops(self, precision: Precision) -> float:
        """The fastest rate that gives this precision.

        A float32 product may also be made of three tf32 ones, or be a tf32 one where PyTorch allows it.
        """
        if precision == "bf16":
            return self.matmul_tflops_bf16
        tf32 = self.matmul_tflops_tf32 or 0.0
        exact = torch.get_float32_matmul_precision() == "highest"
        return max(self.matmul_tflops_fp32, tf32 / 3 if exact else tf32)


@dataclass(frozen=True)
class Cost:
    """Operations (a multiply-add is two) and bytes that no implementation can avoid."""

    flops: int
    bytes: int

    def floor_ms(self, ceilings: Ceilings, precision: Precision = "32") -> float:
        """The larger of the time to compute and the time to move, in milliseconds."""
        computing = self.flops / (ceilings.tflops(precision) * 1e9)
        moving = self.bytes / (ceilings.copy_gb_s * 1e6)
        return max(computing, moving)


@dataclass(frozen=True, kw_only=True)
class LayerSize:
    """A fully connected capsule layer, and how it is run; scaled-distance routing has the gradient "full"."""

    batch: int = 128
    in_caps: int = 1152
    in_pose: int = 8
    out_caps: int = 10
    out_pose: int = 16
    iterations: int = 3
    gradient: Literal["full", "last"] = "full"
    backward: bool = True
    routing: Literal["dynamic", "scaled_distance"] = "dynamic"

    @property
    def votes(self) -> int:
        """Numbers in all votes."""
        return self.batch * self.in_caps * self.out_caps * self.out_pose

    @property
    def cost(self) -> Cost:
        """Votes are formed once and never stored; softmax and squash are left out."""
        rounds, limits = self.iterations, self.routing == "scaled_distance"
        forward = self.in_pose + (2 * rounds - 1)  # multiply-adds a vote: form it, pool r times, agree r - 1
        forward += 2 * limits  # its length, and shortening it
        # backward: to pose and weight; each round pools to votes, all but one also couple and agree (twice)
        routed = 1 if self.gradient == "last" else 4 * rounds - 3
        backward = 2 * self.in_pose + routed + 3 * limits
        poses, parents = self.batch * self.in_caps * self.in_pose, self.batch * self.out_caps * self.out_pose
        weight = self.in_caps * self.in_pose * self.out_caps * self.out_pose
        moved = poses + weight + parents
        if self.backward:  # both are read again, and their gradients written
            moved += 2 * (poses + weight) + parents
        flops = 2 * self.votes * (forward + backward * self.backward)
        return Cost(flops, _FLOAT * moved)


def model_cost(
    name: str, batch: int, options: Mapping[str, object], *, backward: bool = False, adam: bool = False
) -> Cost:
    """Products and routing of a pass, times three with its backward, and the traffic of the weights."""
    size = model_size(name, tuple(sorted(options.items())))
    passes = 1 + 2 * backward + _ADAM_PASSES * adam  # weights are read twice, their gradients written once
    moved = size.weights * passes + batch * size.pixels
    return Cost(batch * size.flops * (3 if backward else 1), _FLOAT * moved)


class ModelSize(NamedTuple):
    """Weights of a model; pixels and operations of one image."""

    weights: int
    pixels: int
    flops: int


@lru_cache(maxsize=256)
def model_size(name: str, options: tuple[tuple[str, object], ...] = ()) -> ModelSize:
    """The size of a model, counted once and without data."""
    with sketching():
        model = create_model(name, **dict(options))
    return ModelSize(count_parameters(model), prod(model.image_shape), count_flops(model)["total"])


def measure_ceilings(device: torch.device) -> Ceilings:
    """The best rates of a large copy and of large matrix products on random numbers."""
    effort = Effort.usual(device, quick=True)
    large = device.type == "cuda"
    side = 8192 if large else 1024
    tf32 = _matmul_tflops(device, effort, side, torch.float32, "high") if large else None
    return Ceilings(
        copy_gb_s=_copy_gb_s(device, effort, 1 << 28 if large else 1 << 25),
        matmul_tflops_fp32=_matmul_tflops(device, effort, side, torch.float32, "highest"),
        matmul_tflops_tf32=tf32,
        matmul_tflops_bf16=_matmul_tflops(device, effort, side, torch.bfloat16, "highest"),
    )


def _copy_gb_s(device: torch.device, effort: Effort, numbers: int) -> float:
    source = torch.randn(numbers, device=device)
    target = torch.empty_like(source)
    timing = time_work(lambda: target.copy_(source), device, effort)
    return 2 * _FLOAT * numbers / (timing.best * 1e6)


def _matmul_tflops(
    device: torch.device, effort: Effort, side: int, dtype: torch.dtype, precision: str
) -> float:
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(left)
    with _float32_precision(precision):
        timing = time_work(lambda: torch.mm(left, right, out=product), device, effort)
    return 2 * side**3 / (timing.best * 1e9)


@contextmanager
def _float32_precision(name: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
