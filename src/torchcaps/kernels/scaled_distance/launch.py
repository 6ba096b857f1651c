"""Launches of fused scaled-distance routing on CUDA, in float32: votes are never stored.

The first round is one pass over the children (`pool_kernel`), every later one two: `distance_kernel` sums the
distances, whose mean all couplings of a sample or of the batch need, then `pool_kernel`. Both compute the
votes anew, which is cheaper than to store even the distances. Each round ends with a small kernel that adds
partial sums and squashes. Backwards a round is one pass (`target_grad_kernel`) and the squash's derivative;
then one last pass (`votes_grad_kernel`) sums the gradient of a vote over all rounds and takes it through the
limit to poses, activations and matrices. Where couplings are constants there is this last pass alone. No sum
uses atomics, so two runs agree to the bit. With three rounds there are 8 launches forward and 7 backward.

Beside inputs, results and `DistanceState` this needs partial sums, at most 32 MB or half the weight's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor
from triton import cdiv

from ..launch import Parents, num_slots, processors
from .backward_kernels import target_grad_kernel, votes_grad_kernel
from .forward_kernels import distance_kernel, pool_kernel
from .state import DistanceGrads, DistanceInputs, DistanceSettings, DistanceState

_REGISTERS = 1 << 16  # of a processor


@dataclass(frozen=True)
class Tile:
    """What one program works on at a time."""

    rows: int  # samples, or numbers of a child's pose for the last pass
    warps: int
    registers: int  # of a thread, at most: the compiler would take all there are and leave few warps room

    def programs(self, processors: int) -> int:
        """How many run at once."""
        return processors * (_REGISTERS // (32 * self.warps * self.registers))


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tile sizes of the passes; chosen by shape, so that starting up is quick and always the same."""

    distance: Tile
    pool: Tile
    target_grad: Tile
    votes_grad: Tile


@lru_cache(maxsize=256)
def choose_tiles(in_pose: int, out_caps: int, out_pose: int) -> Tiles:
    """Tile sizes for a layer: a warp holds 256 numbers of the parents' poses, of several samples each."""
    numbers = triton.next_power_of_2(out_caps) * triton.next_power_of_2(out_pose)
    warps, more = max(1, numbers // 256), min(4, max(1, 256 // numbers))
    columns = 4 if in_pose > 8 or warps > 4 else triton.next_power_of_2(in_pose)
    return Tiles(
        distance=Tile(4 * more, warps, 168),
        pool=Tile(4 * more, warps, 168),
        target_grad=Tile(2 * more, warps, 128),
        votes_grad=Tile(columns, warps, 224),
    )


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, inputs: DistanceInputs, sharpness: float) -> None:
        self.inputs, self.sharpness = inputs, sharpness
        self.batch, self.in_caps, self.in_pose = inputs.poses.shape
        self.matrices, _, self.num_out, self.out_pose = inputs.weight.shape
        self.processors = processors(inputs.poses.device)
        self.tiles = choose_tiles(self.in_pose, self.num_out, self.out_pose)
        pose_block = triton.next_power_of_2(self.out_pose)
        self.parents = Parents(self.batch, self.num_out, self.out_pose, pose_block)
        self.sizes = {
            "J": self.num_out,
            "P": self.out_pose,
            "OUT": triton.next_power_of_2(self.num_out),
            "POSE": pose_block,
        }

    def new(self, *shape: int) -> Tensor:
        """Memory for numbers of this shape."""
        return self.inputs.poses.new_empty(shape)

    def num_slots(self, tile: Tile) -> int:
        """Groups of children, each with a partial sum of its own: enough to fill the device."""
        wanted = tile.programs(self.processors) // cdiv(self.batch, tile.rows)
        slot_size, weight = self.parents.numbers, self.inputs.weight
        return num_slots(self.in_caps, wanted=wanted, slot_size=slot_size, weight=weight)

    def over_children(
        self, kernel: Any, tile: Tile, slots: int, tensors: tuple[Tensor, ...], *rest: Any, **constants: Any
    ) -> None:
        """Launches a pass whose programs each see one tile of samples and the children of one slot."""
        kernel[(slots, cdiv(self.batch, tile.rows))](
            *self.inputs,
            *tensors,
            self.batch,
            self.in_caps,
            self.matrices,
            cdiv(self.in_caps, slots),
            *rest,
            D=self.in_pose,
            ROWS=tile.rows,
            **self.sizes,
            **constants,
            num_warps=tile.warps,
            maxnreg=tile.registers,
        )


def route(
    inputs: DistanceInputs, bias: Tensor | None, settings: DistanceSettings, keep: bool
) -> DistanceState:
    """All rounds; `keep` the couplings of the last."""
    layer, iterations = _Layer(inputs, settings.sharpness), settings.iterations
    parents = (layer.batch, layer.num_out, layer.out_pose)
    state = DistanceState(
        poses=layer.new(*parents),
        coupling=layer.new(layer.batch, layer.in_caps, layer.num_out) if keep else layer.new(0),
        pooled=layer.new(iterations, *parents),
        targets=layer.new(iterations - 1, *parents),
        means=layer.new(iterations - 1, layer.batch),
    )
    slots = layer.num_slots(layer.tiles.pool)
    partial = layer.new(slots, *parents)
    distances = layer.new(layer.batch, layer.num_slots(layer.tiles.distance))
    with torch.cuda.device_of(inputs.poses):
        for step in range(iterations):
            last = step == iterations - 1
            if step > 0:
                _sum_distances(layer, state.targets[step - 1], distances, settings.whole_batch)
            _pool(layer, state, step, distances, partial, keep=keep and last)
            result = state.poses if last else state.targets[step]
            layer.parents.squash(partial, bias, state.pooled[step], result)
    return state


def _sum_distances(layer: _Layer, target: Tensor, distances: Tensor, whole_batch: bool) -> None:
    """Each slot's sum of the distances of a sample; of the whole batch, the mean of it over samples."""
    slots = distances.shape[1]
    layer.over_children(distance_kernel, layer.tiles.distance, slots, (target, distances))
    if whole_batch:
        distances.copy_(distances.mean(0, keepdim=True).expand_as(distances))


def _pool(
    layer: _Layer, state: DistanceState, step: int, distances: Tensor, partial: Tensor, *, keep: bool
) -> None:
    """Partial sums of round `step`."""
    slots, even = distances.shape[1], step == 0
    target, mean = (partial, partial) if even else (state.targets[step - 1], state.means[step - 1])
    layer.over_children(
        pool_kernel,
        layer.tiles.pool,
        partial.shape[0],
        (target, distances, mean, state.coupling, partial),
        slots,
        layer.sharpness,
        EVEN=even,
        KEEP=keep,
    )


def route_backward(
    grad: Tensor, inputs: DistanceInputs, state: DistanceState, sharpness: float, full: bool
) -> DistanceGrads:
    """Gradients, from that of the result; unless `full`, through the sum of the last round alone."""
    layer, iterations = _Layer(inputs, sharpness), state.pooled.shape[0]
    full = full or iterations == 1
    grad_pooled = torch.empty_like(state.pooled)
    slots = layer.num_slots(layer.tiles.target_grad)
    partial, unread = layer.new(slots, *state.poses.shape), torch.empty_like(grad)
    with torch.cuda.device_of(inputs.poses):
        layer.parents.squash_grad(grad, None, state.pooled[-1], grad_pooled[-1], unread)
        for step in reversed(range(1, iterations if full else 1)):
            layer.over_children(
                target_grad_kernel,
                layer.tiles.target_grad,
                slots,
                (state.targets[step - 1], state.means[step - 1], grad_pooled[step], partial),
                sharpness,
            )
            layer.parents.squash_grad(None, partial, state.pooled[step - 1], grad_pooled[step - 1], unread)
        poses, activations, weight = _votes_grad(layer, state, grad_pooled, full)
    of_bias = grad_pooled.sum((0, 1)) if full else grad_pooled[-1].sum(0)
    return DistanceGrads(poses, activations, weight, of_bias)


def _votes_grad(
    layer: _Layer, state: DistanceState, grad_pooled: Tensor, full: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of poses, activations and weight."""
    inputs, tile = layer.inputs, layer.tiles.votes_grad
    blocks, voters = cdiv(layer.in_pose, tile.rows), layer.batch * layer.in_caps // layer.matrices
    wanted = tile.programs(layer.processors) // (blocks * layer.matrices)
    size = inputs.weight.numel()
    splits = num_slots(voters, wanted=wanted, slot_size=size, weight=inputs.weight)
    grad_poses, grad_activations = torch.empty_like(inputs.poses), torch.empty_like(inputs.activations)
    grad_weight = layer.new(splits, *inputs.weight.shape)
    votes_grad_kernel[(layer.matrices, blocks, splits)](
        *inputs,
        state.targets,
        state.means,
        grad_pooled,
        grad_poses,
        grad_activations,
        grad_weight,
        layer.batch,
        layer.in_caps,
        layer.matrices,
        cdiv(voters, splits),
        state.pooled.shape[0],
        layer.sharpness,
        D=layer.in_pose,
        IN=tile.rows,
        FULL=full,
        **layer.sizes,
        num_warps=tile.warps,
        maxnreg=tile.registers,
    )
    return grad_poses, grad_activations, grad_weight[0] if splits == 1 else grad_weight.sum(0)
