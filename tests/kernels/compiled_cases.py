"""Layers of real sizes, each called forwards and backwards, that reach every kernel with every flag."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from torchcaps.apps.uav.filter import FilterSettings
from torchcaps.apps.uav.filter.cuda import CudaBackend
from torchcaps.core import squash, squash_exponential
from torchcaps.kernels import (
    DistanceSettings,
    EMScales,
    fused_dynamic_coupling,
    fused_dynamic_routing,
    fused_em_routing,
    fused_keep_zeros,
    fused_local_dynamic_routing,
    fused_scaled_distance_routing,
    fused_self_attention_routing,
    fused_shrink,
    fused_squash,
    fused_strided_conv,
)

from apps.uav.filter.flights import fly, made_map
from kernels.routing_reference import Case

CLASSES = Case(batch=128, in_caps=1152, in_pose=8, matrices=1152, out_caps=10, pose=16)


def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype, requires_grad=True)


def differentiate(function, /, *inputs: Tensor, **settings) -> None:
    outputs = function(*inputs, **settings)
    outputs = [each for each in outputs if each is not None and each.requires_grad]
    torch.autograd.grad(outputs, inputs, outputs)


def route_dynamically(case: Case) -> None:
    inputs = case.inputs(torch.float32)
    differentiate(lambda *given: [fused_dynamic_routing(*given, **case.routing)], *inputs)
    fused_dynamic_coupling(*inputs, iterations=case.iterations, leaky=case.leaky)


def route_with_coarse_products() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    route_dynamically(replace(CLASSES, gradient="last"))
    torch.set_float32_matmul_precision(before)


def route_by_distance(full: bool) -> None:
    settings = DistanceSettings(1.0, whole_batch=not full, full=full)
    inputs = new(128, 1152, 8), new(128, 1152), new(1152, 8, 32, 8), new(32, 8)
    differentiate(fused_scaled_distance_routing, *inputs, settings=settings, return_coupling=full)


def route_by_em(batch: int, side: int, in_caps: int, out_types: int, window: tuple[int, int]) -> None:
    is_fully_connected = side == 1

    def route(poses, activations, weight, *costs):
        offsets = torch.zeros(in_caps, 16) if is_fully_connected else None
        scales = EMScales(3, 1.0, 0.1, 1.0)
        return fused_em_routing(
            poses, activations, weight, costs=costs, window=window, scales=scales, offsets=offsets
        )

    children = new(batch, side, side, in_caps, 16), new(batch, side, side, in_caps)
    differentiate(route, *children, new(in_caps, 4, out_types, 4), new(out_types), new(out_types))


def pull_weights(*shapes: tuple[int, ...]) -> None:
    weights = [new(*shape) for shape in shapes]
    fused_shrink(weights, [torch.zeros_like(weight) for weight in weights], torch.tensor(1e-4))
    fused_keep_zeros(weights, [torch.ones_like(weight, dtype=torch.bool) for weight in weights])


def fly_once(storage: str | None, *, has_gaps: bool = False) -> None:
    grid, vectors, descriptors = made_map(storage or "float32", columns=333, rows=4, headings=12)
    known = np.ones((grid.rows, grid.columns), bool) if has_gaps else None
    described = None if storage is None else replace(descriptors, known=known)
    fly(grid, vectors, described, CudaBackend("cpu"), FilterSettings(gate=0.0), updates=1)


def convolve(channels: int, dtype: torch.dtype, *, bias: bool = True) -> None:
    maps, weight = new(128, channels, 20, 20, dtype=dtype), new(channels, channels, 9, 9, dtype=dtype)
    offset = new(channels) if bias else None
    result = fused_strided_conv(maps, weight, offset, 2)
    wanted = maps if offset is None else [maps, offset]
    torch.autograd.grad(result, wanted, result.detach())


CASES = {
    "DR-CapsNet": lambda: route_dynamically(CLASSES),
    "DR-CapsNet, last, leaky, no bias": lambda: route_dynamically(
        replace(CLASSES, gradient="last", leaky=True, bias=False)
    ),
    "DR-CapsNet, coarse products": route_with_coarse_products,
    "DR-CapsNet, large batch": lambda: route_dynamically(replace(CLASSES, batch=640)),
    "gamma-CapsNet": lambda: route_by_distance(full=True),
    "gamma-CapsNet as in the thesis": lambda: route_by_distance(full=False),
    "EM-CapsNet 64/8/16/16, first": lambda: route_by_em(16, 6, 9 * 8, 16, window=(3, 2)),
    "EM-CapsNet 64/8/16/16, classes": lambda: route_by_em(16, 1, 16 * 16, 5, window=(1, 1)),
    "one parent of nine children": lambda: route_by_em(1, 1, 9, 1, window=(1, 1)),
    "SegCaps": lambda: differentiate(fused_local_dynamic_routing, new(1, 16, 1024, 4, 32), new(4, 32)),
    "SegCaps, half precision, leaky, no bias": lambda: differentiate(
        fused_local_dynamic_routing, new(1, 8, 1024, 8, 32, dtype=torch.bfloat16), leaky=True
    ),
    "Efficient-CapsNet": lambda: differentiate(
        fused_self_attention_routing, new(128, 16, 8), new(16, 8, 10, 16), new(16, 10)
    ),
    "Efficient-CapsNet, no prior": lambda: differentiate(
        fused_self_attention_routing, new(128, 16, 8), new(16, 8, 10, 16)
    ),
    "primary capsules": lambda: differentiate(fused_squash, new(128, 6, 6, 32, 8), function=squash),
    "primary capsules, half precision, steeper": lambda: differentiate(
        fused_squash, new(128, 6, 6, 32, 8, dtype=torch.bfloat16), function=squash_exponential
    ),
    "primary convolution": lambda: convolve(256, torch.bfloat16),
    "primary convolution of few channels, no bias": lambda: convolve(16, torch.float16, bias=False),
    "weights of DR-CapsNet": lambda: pull_weights((256, 1, 9, 9), (256, 256, 9, 9), (1152, 8, 10, 16)),
    "weights of odd sizes, for two launches": lambda: pull_weights(*[(number, 7) for number in range(1, 21)]),
    "flight without a map": lambda: fly_once(None),
    "flight": lambda: fly_once("float16"),
    "flight, small map": lambda: fly_once("product"),
    "flight over a map with gaps": lambda: fly_once("int8", has_gaps=True),
}
