"""Fused vote-and-route, dynamic routing, on CUDA, in float32: votes are never formed, let alone stored.

An iteration is one pass over the children (`pool_kernel`), which writes partial sums, and one small kernel
that adds them and squashes. Backwards it is one pass (`pose_grad_kernel`), which adds to the gradient of the
poses and writes partial sums of `dL/dV`, and the squash's derivative; then `weight_grad_kernel` sums the
gradient of the weight over samples and iterations in registers. No sum uses atomics, so two runs agree to the
bit. With three iterations there are 6 launches forward and about 10 backward.

Beside inputs, results and `RouteState` this needs partial sums, at most 32 MB or half the weight's size, and
backward `2 (r - 1) B I` floats. It takes poses of up to 64 numbers, fewer than 65536 capsules on either side,
and fewer than 2**31 numbers in the poses and in the weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

from .dynamic_math import RouteState
from .dynamic_triton_grad import pose_grad_kernel, weight_grad_kernel
from .dynamic_triton_kernels import coupling_kernel, pool_kernel
from .dynamic_triton_squash import squash_grad_kernel, squash_kernel

_PARTIAL_BYTES = 32 << 20


@dataclass(frozen=True)
class Tile:
    """What one program works on at a time; a warp takes 16 samples, or as many columns as it can hold."""

    kids: int  # children, or matrices for the gradient of the weight
    rows: int = 16  # samples
    warps: int = 1
    stages: int = 2  # loads in flight


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tile sizes of the passes; chosen by shape, so that starting up is quick and always the same."""

    pool: Tile
    pose_grad: Tile
    weight_grad: Tile
    warps: int  # that a pass should consist of at least, to fill the device


override: dict[str, Any] = {}  # fields of `Tiles` that a benchmark fixes


@lru_cache(maxsize=256)
def choose_tiles(in_pose: int, out_pose: int, matrices: int, processors: int) -> Tiles:
    """Tile sizes for a layer: 1024 numbers of the weight a warp, so that its registers suffice."""
    in_block, columns = triton.next_power_of_2(in_pose), 1024 // _pose_block(out_pose)
    fewest = -(-16 // in_block)
    kids = max(columns // in_block, fewest)
    few = max(min(kids, triton.next_power_of_2(matrices)), fewest)
    return Tiles(pool=Tile(kids), pose_grad=Tile(kids), weight_grad=Tile(few, stages=1), warps=8 * processors)


def _pose_block(out_pose: int) -> int:
    return max(16, triton.next_power_of_2(out_pose))  # a matrix product needs 16


@lru_cache(maxsize=16)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, poses: Tensor, weight: Tensor, leaky: bool) -> None:
        self.poses, self.weight = poses, weight
        self.batch, self.in_caps, in_pose = poses.shape
        self.matrices, _, self.num_out, self.out_pose = weight.shape
        tiles = choose_tiles(in_pose, self.out_pose, self.matrices, _processors(poses.device))
        self.tiles = replace(tiles, **override) if override else tiles
        self.shape = {"J": self.num_out, "P": self.out_pose, "POSE": _pose_block(self.out_pose)}
        self.inner = {
            **self.shape,
            "D": in_pose,
            "IN": triton.next_power_of_2(in_pose),
            "LEAKY": leaky,
            "PRECISION": "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32",
        }

    def new_partial(self, tile: Tile) -> Tensor:
        """A slot `[batch, out_caps, pose]` for each group of children: enough groups to fill the device."""
        size = self.batch * self.num_out * self.out_pose
        num_blocks = -(-self.in_caps // tile.kids)
        wanted = -(-self.tiles.warps // -(-self.batch // 16))
        affordable = max(_PARTIAL_BYTES, 2 * self.weight.numel()) // (4 * size)
        blocks = -(-num_blocks // max(1, min(wanted, affordable, num_blocks)))
        return self.poses.new_empty(-(-num_blocks // blocks), self.batch, self.num_out, self.out_pose)

    def over_children(
        self, kernel: Any, tile: Tile, num_slots: int, *tensors: Tensor, **constants: Any
    ) -> None:
        """Launches a pass whose programs each see one tile of samples and the children of one slot."""
        num_blocks = -(-self.in_caps // tile.kids)
        kernel[(-(-self.batch // tile.rows), num_slots)](
            self.poses,
            self.weight,
            *tensors,
            self.batch,
            self.in_caps,
            self.matrices,
            -(-num_blocks // num_slots),
            ROWS=tile.rows,
            KIDS=tile.kids,
            **self.inner,
            **constants,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )

    def over_samples(self, kernel: Any, num_slots: int, *tensors: Tensor, **constants: Any) -> None:
        """Launches a kernel whose programs each see one sample and a few of its out capsules."""
        out_block = 64 // self.shape["POSE"]
        kernel[(self.batch, -(-self.num_out // out_block))](
            *tensors,
            num_slots,
            self.batch * self.num_out * self.out_pose,
            OUT=out_block,
            **self.shape,
            **constants,
            num_warps=4,
        )


def route(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> RouteState:
    """Output poses of the last iteration, and what the backward pass and the couplings are computed from."""
    layer = _Layer(poses, weight, leaky)
    shape = (poses.shape[0], *weight.shape[2:])
    routed, pooled = poses.new_empty(shape), poses.new_empty(iterations, *shape)
    direction, partial = poses.new_empty(iterations, *shape), layer.new_partial(layer.tiles.pool)
    slots = partial.shape[0]
    with torch.cuda.device_of(poses):
        for step in range(iterations):
            first, last = step == 0, step == iterations - 1
            layer.over_children(pool_kernel, layer.tiles.pool, slots, direction[step], partial, UNIFORM=first)
            layer.over_samples(
                squash_kernel,
                slots,
                partial,
                partial if bias is None else bias,
                pooled[step],
                direction[step],
                routed if last else direction[step + 1],
                BIAS=bias is not None,
                FIRST=first,
                LAST=last,
            )
    return RouteState(routed, pooled, direction)


def coupling(poses: Tensor, weight: Tensor, direction: Tensor, leaky: bool) -> Tensor:
    """Couplings `[batch, in_caps, out_caps]` that the votes' agreement with `direction` gives."""
    layer = _Layer(poses, weight, leaky)
    result = poses.new_empty(*poses.shape[:2], weight.shape[2])
    num_blocks = -(-layer.in_caps // layer.tiles.pool.kids)
    with torch.cuda.device_of(poses):
        layer.over_children(coupling_kernel, layer.tiles.pool, num_blocks, direction, result)
    return result


def route_backward(
    grad: Tensor, poses: Tensor, weight: Tensor, state: RouteState, full: bool, leaky: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of poses, weight and bias; `full` goes through the couplings of all iterations."""
    layer = _Layer(poses, weight, leaky)
    iterations = state.pooled.shape[0]
    full = full or iterations == 1  # the only couplings are constant
    grad_pooled, grad_poses = torch.empty_like(state.pooled), torch.empty_like(poses)
    # log of the softmax's sum and mean of dL/dc of every (sample, child), from the second iteration on
    stats = poses.new_empty(2, iterations - 1, *poses.shape[:2])
    with torch.cuda.device_of(poses):
        _squash_grad(layer, grad, None, state.pooled[-1], grad_pooled[-1], grad_pooled[-1])
        _pose_grads(layer, state, grad_pooled, grad_poses, stats, full)
        if full:
            _add_uniform_grad(layer, grad_pooled[0], grad_poses, add=iterations > 1)
        grad_weight = _weight_grad(layer, state, grad_pooled, stats, full)
    return grad_poses, grad_weight, grad_pooled.sum((0, 1)) if full else grad_pooled[-1].sum(0)


def _squash_grad(
    layer: _Layer, grad: Tensor | None, partial: Tensor | None, pooled: Tensor, result: Tensor, total: Tensor
) -> None:
    layer.over_samples(
        squash_grad_kernel,
        0 if partial is None else partial.shape[0],
        result if grad is None else grad,
        result if partial is None else partial,
        pooled,
        result,
        total,
        GRAD=grad is not None,
        PARTIAL=partial is not None,
    )


def _pose_grads(
    layer: _Layer, state: RouteState, grad_pooled: Tensor, grad_poses: Tensor, stats: Tensor, full: bool
) -> None:
    """Iterations r to 2 backwards, or r alone: fills `grad_poses`, the earlier `grad_pooled` and `stats`."""
    iterations, tile = grad_pooled.shape[0], layer.tiles.pose_grad
    partial = layer.new_partial(tile) if full else grad_pooled  # not written then
    num_slots = partial.shape[0] if full else -(-layer.in_caps // tile.kids)
    grad_sum = torch.empty_like(state.poses)
    for step in reversed(range(1 if full else max(1, iterations - 1), iterations)):
        last = step == iterations - 1
        layer.over_children(
            pose_grad_kernel,
            tile,
            num_slots,
            state.direction[step],
            grad_pooled[step],
            partial,
            grad_poses,
            stats[0, step - 1],
            stats[1, step - 1],
            FULL=full,
            ADD=not last,
        )
        if full:
            earlier = None if last else grad_sum
            _squash_grad(layer, earlier, partial, state.pooled[step - 1], grad_pooled[step - 1], grad_sum)


def _add_uniform_grad(layer: _Layer, grad_pooled: Tensor, grad_poses: Tensor, *, add: bool) -> None:
    """The first iteration's share of the poses' gradient, one matrix product for all positions."""
    rows, positions = layer.weight.shape[0] * layer.weight.shape[1], layer.in_caps // layer.matrices
    share = 1 / (layer.num_out + layer.inner["LEAKY"])
    weight = layer.weight.view(rows, -1).mT
    if positions == 1:
        grad_poses.view(layer.batch, rows).addmm_(grad_pooled.flatten(1), weight, beta=int(add), alpha=share)
        return
    each = (share * grad_pooled.flatten(1) @ weight).unsqueeze(1)
    flat = grad_poses.view(layer.batch, positions, rows)
    flat.add_(each) if add else flat.copy_(each.expand_as(flat))


def _weight_grad(layer: _Layer, state: RouteState, grad_pooled: Tensor, stats: Tensor, full: bool) -> Tensor:
    iterations, tile, weight = grad_pooled.shape[0], layer.tiles.weight_grad, layer.weight
    pairs = layer.batch * (layer.in_caps // layer.matrices)
    tiles = -(-layer.matrices // tile.kids)
    wanted = -(-layer.tiles.warps // (2 * tiles * layer.num_out * tile.warps))
    row_tiles = -(-pairs // tile.rows)
    span = -(-row_tiles // min(wanted, row_tiles)) * tile.rows
    splits = -(-pairs // span)
    result = weight.new_empty(weight.shape if splits == 1 else (splits, *weight.shape))
    weight_grad_kernel[(tiles, layer.num_out, splits)](
        layer.poses,
        weight,
        state.direction,
        grad_pooled,
        stats[0],
        stats[1],
        result,
        layer.batch,
        layer.in_caps,
        layer.matrices,
        span,
        1 if full else iterations - 1,
        iterations,
        ROWS=tile.rows,
        KIDS=tile.kids,
        FULL=full,
        **layer.inner,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return result if splits == 1 else result.sum(0)
