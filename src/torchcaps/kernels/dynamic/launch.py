"""Launches of fused dynamic routing on CUDA, in float32: votes are never stored.

An iteration is one pass over the children (`pool_kernel`), which writes partial sums, and one small kernel
that adds them and squashes. Backwards it is one pass (`pose_grad_kernel`), which adds to the gradient of the
poses, keeps every pair's coupling and its gradient, and writes partial sums of `dL/dV`, and the squash's
derivative; then `weight_grad_kernel` sums the gradient of the weight over samples and iterations. No sum
uses atomics, so two runs agree to the bit. With three iterations there are 6 launches forward and 8 backward.

Beside inputs, results and `RouteState` this needs partial sums, at most 32 MB or half the weight's size, and
backward `2 (r - 1) I J` floats a sample (`I J` for the gradient "last"). A large batch goes backward in
chunks, of 512 samples or what fits in 64 MB or half the weight's size, but no less than 16: 1152 children and
10 classes take 24 MB at batch 128, 47 MB at any large one. It accepts poses of up to 64 numbers, fewer than
65536 capsules on either side, and fewer than 2**31 numbers in children, parents and matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import torch
import triton
from torch import Tensor
from triton import cdiv

from ..launch import Parents, num_slots, processors
from .backward_kernels import pose_grad_kernel, weight_grad_kernel
from .forward_kernels import coupling_kernel, pool_kernel
from .state import RouteState

_SHARE_BYTES = 64 << 20


@dataclass(frozen=True)
class Tile:
    """What one program works on at a time; a warp takes 16 samples, or as many columns as it can hold."""

    kids: int  # children, or matrices for the gradient of the weight
    rows: int = 16  # samples
    warps: int = 1
    stages: int = 2  # loads in flight
    fill: int = 8  # warps whose registers fit in a processor: as many are launched where there is work


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tile sizes of the passes; chosen by shape, so that starting up is quick and always the same."""

    pool: Tile
    pose_grad: Tile
    weight_grad: Tile
    chunk: int = 512  # most samples that a backward pass takes at a time: what it keeps fits in a large cache


@lru_cache(maxsize=256)
def choose_tiles(in_pose: int, out_pose: int, matrices: int, is_small: bool) -> Tiles:
    """Tile sizes for a layer: 1024 numbers of the weight a warp, or 512 where there are few samples.

    The gradient of the poses always takes 512: with more, its sums find no registers.
    """
    fewest = cdiv(16, triton.next_power_of_2(in_pose))
    most = max(1024 // _pose_block(out_pose) // triton.next_power_of_2(in_pose), fewest)
    half = max(most // 2, fewest)
    few = max(min(most, triton.next_power_of_2(matrices)), fewest)
    return Tiles(
        pool=Tile(half, fill=12) if is_small else Tile(most),
        pose_grad=Tile(half),
        weight_grad=Tile(few, stages=1, fill=12),
    )


def _pose_block(out_pose: int) -> int:
    return max(16, triton.next_power_of_2(out_pose))  # a matrix product needs 16


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, poses: Tensor, weight: Tensor, leaky: bool) -> None:
        self.poses, self.weight = poses, weight
        self.batch, self.in_caps, in_pose = poses.shape
        self.matrices, _, self.num_out, self.out_pose = weight.shape
        self.processors = processors(poses.device)
        self.tiles = choose_tiles(in_pose, self.out_pose, self.matrices, self.batch <= 256)
        self.parents = Parents(self.batch, self.num_out, self.out_pose, _pose_block(self.out_pose))
        self.constants = {
            "J": self.num_out,
            "P": self.out_pose,
            "POSE": self.parents.pose_block,
            "D": in_pose,
            "IN": triton.next_power_of_2(in_pose),
            "LEAKY": leaky,
            "PRECISION": "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32",
        }

    def new_partial(self, tile: Tile) -> Tensor:
        """A slot `[batch, out_caps, pose]` for each group of children: enough groups to fill the device."""
        wanted = cdiv(tile.fill * self.processors, tile.warps * cdiv(self.batch, tile.rows))
        slots = num_slots(
            cdiv(self.in_caps, tile.kids), wanted=wanted, slot_size=self.parents.numbers, weight=self.weight
        )
        return self.poses.new_empty(slots, self.batch, self.num_out, self.out_pose)

    def over_children(self, kernel: Any, tile: Tile, slots: int, *tensors: Tensor, **constants: Any) -> None:
        """Launches a pass whose programs each see one tile of samples and the children of one slot."""
        kernel[(cdiv(self.batch, tile.rows), slots)](
            self.poses,
            self.weight,
            *tensors,
            self.batch,
            self.in_caps,
            self.matrices,
            cdiv(cdiv(self.in_caps, tile.kids), slots),
            ROWS=tile.rows,
            KIDS=tile.kids,
            **self.constants,
            **constants,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )


def route(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> RouteState:
    """Output poses of the last iteration, and what the backward pass and the couplings are computed from."""
    layer = _Layer(poses, weight, leaky)
    shape = (poses.shape[0], *weight.shape[2:])
    routed, pooled = poses.new_empty(shape), poses.new_empty(iterations, *shape)
    direction, partial = poses.new_empty(iterations, *shape), layer.new_partial(layer.tiles.pool)
    with torch.cuda.device_of(poses):
        for step in range(iterations):
            first, last = step == 0, step == iterations - 1
            layer.over_children(
                pool_kernel, layer.tiles.pool, len(partial), direction[step], partial, UNIFORM=first
            )
            layer.parents.squash(
                partial,
                bias,
                pooled[step],
                routed if last else direction[step + 1],
                direction=direction[step],
                first=first,
                last=last,
            )
    return RouteState(routed, pooled, direction)


def coupling(poses: Tensor, weight: Tensor, direction: Tensor, leaky: bool) -> Tensor:
    """Couplings `[batch, in_caps, out_caps]` that the votes' agreement with `direction` gives."""
    layer = _Layer(poses, weight, leaky)
    result = poses.new_empty(*poses.shape[:2], weight.shape[2])
    tile = layer.tiles.pool
    with torch.cuda.device_of(poses):
        layer.over_children(coupling_kernel, tile, cdiv(layer.in_caps, tile.kids), direction, result)
    return result


def route_backward(
    grad: Tensor, poses: Tensor, weight: Tensor, state: RouteState, full: bool, leaky: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of poses, weight and bias; `full` goes through the couplings of all iterations."""
    layer, iterations = _Layer(poses, weight, leaky), state.pooled.shape[0]
    full = full or iterations == 1  # the only couplings are constant
    grad_pooled, grad_poses = torch.empty_like(state.pooled), torch.empty_like(poses)
    # of every pair, c and, if full, dL/db; of the second iteration and later ones, or of the last
    kinds = (2, iterations - 1, layer.num_out) if full else (1, 1, layer.num_out)
    chunk = _chunk_size(layer, kinds)
    memory = poses.new_empty(prod(kinds) * chunk * layer.in_caps)
    grad_weight: Tensor | None = None
    with torch.cuda.device_of(poses):
        layer.parents.squash_grad(grad, None, state.pooled[-1], grad_pooled[-1], grad_pooled[-1])
        for start in range(0, layer.batch, chunk):
            part = slice(start, min(start + chunk, layer.batch))
            some = layer if chunk >= layer.batch else _Layer(poses[part], weight, leaky)
            shares = memory[: prod(kinds) * some.batch * some.in_caps].view(*kinds, some.batch, some.in_caps)
            past = RouteState(state.poses[part], state.pooled[:, part], state.direction[:, part])
            _pose_grads(some, past, grad_pooled[:, part], grad_poses[part], shares)
            grad_weight = _weight_grad(some, past, grad_pooled[:, part], shares, grad_weight)
        if full:
            _add_uniform_grad(layer, grad_pooled[0], grad_poses, add=iterations > 1)
    assert grad_weight is not None  # a layer without samples is not launched
    grad_weight = grad_weight[0] if grad_weight.shape[0] == 1 else grad_weight.sum(0)
    return grad_poses, grad_weight, grad_pooled.sum((0, 1)) if full else grad_pooled[-1].sum(0)


def _chunk_size(layer: _Layer, kinds: tuple[int, ...]) -> int:
    """Samples that the backward pass takes at a time: equal numbers whose `shares` are affordable."""
    affordable = max(_SHARE_BYTES, 2 * layer.weight.numel()) // (4 * max(1, prod(kinds)) * layer.in_caps)
    most = max(16, min(layer.tiles.chunk, affordable // 16 * 16))
    return cdiv(layer.batch, 16 * cdiv(layer.batch, most)) * 16


def _pose_grads(
    layer: _Layer, state: RouteState, grad_pooled: Tensor, grad_poses: Tensor, shares: Tensor
) -> None:
    """Iterations r to 2 backwards, or r alone: fills `grad_poses`, the earlier `grad_pooled` and `shares`."""
    iterations, tile, full = grad_pooled.shape[0], layer.tiles.pose_grad, shares.shape[0] == 2
    partial = layer.new_partial(tile) if full else grad_pooled  # not written then
    slots = len(partial) if full else cdiv(layer.in_caps, tile.kids)
    grad_sum = torch.empty_like(grad_pooled[-1]) if full else grad_pooled[-1]
    first_step = iterations - shares.shape[1]
    for step in reversed(range(first_step, iterations)):
        last = step == iterations - 1
        layer.over_children(
            pose_grad_kernel,
            tile,
            slots,
            state.direction[step],
            grad_pooled[step],
            partial,
            grad_poses,
            shares[0, step - first_step],
            shares[-1, step - first_step],
            FULL=full,
            ADD=not last,
        )
        if full:
            earlier = None if last else grad_sum
            layer.parents.squash_grad(
                earlier, partial, state.pooled[step - 1], grad_pooled[step - 1], grad_sum
            )


def _add_uniform_grad(layer: _Layer, grad_pooled: Tensor, grad_poses: Tensor, *, add: bool) -> None:
    """The first iteration's share of the poses' gradient, one matrix product for all positions."""
    rows, positions = layer.weight.shape[0] * layer.weight.shape[1], layer.in_caps // layer.matrices
    share = 1 / (layer.num_out + layer.constants["LEAKY"])
    weight = layer.weight.view(rows, -1).mT
    if positions == 1:
        grad_poses.view(layer.batch, rows).addmm_(grad_pooled.flatten(1), weight, beta=int(add), alpha=share)
        return
    each = (share * grad_pooled.flatten(1) @ weight).unsqueeze(1)
    flat = grad_poses.view(layer.batch, positions, rows)
    flat.add_(each) if add else flat.copy_(each.expand_as(flat))


def _weight_grad(
    layer: _Layer, state: RouteState, grad_pooled: Tensor, shares: Tensor, result: Tensor | None
) -> Tensor:
    """Adds these samples' share of the weight's gradient to `result`, `[splits, *weight.shape]`."""
    iterations, tile, weight = grad_pooled.shape[0], layer.tiles.weight_grad, layer.weight
    row_tiles = cdiv(layer.batch * (layer.in_caps // layer.matrices), tile.rows)
    tiles = cdiv(layer.matrices, tile.kids)
    wanted = max(1, tile.fill * layer.processors // (tiles * layer.num_out * tile.warps))
    add, splits = result is not None, min(wanted, row_tiles) if result is None else result.shape[0]
    result = weight.new_empty(splits, *weight.shape) if result is None else result
    weight_grad_kernel[(tiles, layer.num_out, splits)](
        layer.poses,
        state.direction,
        grad_pooled,
        shares[0],
        shares[-1],
        result,
        layer.batch,
        layer.in_caps,
        layer.matrices,
        cdiv(row_tiles, splits) * tile.rows,
        iterations - shares.shape[1],
        iterations,
        grad_pooled.stride(0),
        ROWS=tile.rows,
        KIDS=tile.kids,
        FULL=shares.shape[0] == 2,
        ADD=add,
        **layer.constants,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return result
