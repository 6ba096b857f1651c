"""Fused scaled-distance routing on CUDA, in float32: votes are computed where they are needed, never stored.

The first round is one pass over the children (`pool_kernel`), every later one two: `distance_kernel` sums the
distances, whose mean all couplings of a sample need, then `pool_kernel`. Both compute the votes anew, which
is cheaper than to store even the distances. Each round ends with a small kernel that adds partial sums and
squashes. Backwards a round is one pass (`target_grad_kernel`) and the squash's derivative; then one last pass
(`votes_grad_kernel`) adds up what all rounds ask of a vote and takes it through the limit to poses,
activations and matrices. No sum uses atomics, so two runs agree to the bit. With three rounds there are 8
launches forward and 7 backward.

Beside inputs, results and `DistanceState` this needs partial sums, at most 32 MB or half the weight's size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

from .dynamic_triton_squash import squash_grad_kernel, squash_kernel
from .scaled_distance_state import DistanceGrads, DistanceInputs, DistanceState
from .scaled_distance_triton_grad import target_grad_kernel, votes_grad_kernel
from .scaled_distance_triton_kernels import distance_kernel, pool_kernel

_PARTIAL_BYTES = 32 << 20
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


override: dict[str, Any] = {}  # fields of `Tiles` that a benchmark fixes


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


@lru_cache(maxsize=16)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, inputs: DistanceInputs, sharpness: float) -> None:
        self.inputs, self.sharpness = inputs, sharpness
        self.batch, self.in_caps, self.in_pose = inputs.poses.shape
        self.matrices, _, self.num_out, self.out_pose = inputs.weight.shape
        self.processors = _processors(inputs.poses.device)
        tiles = choose_tiles(self.in_pose, self.num_out, self.out_pose)
        self.tiles = replace(tiles, **override) if override else tiles
        self.sizes = {
            "J": self.num_out,
            "P": self.out_pose,
            "OUT": triton.next_power_of_2(self.num_out),
            "POSE": triton.next_power_of_2(self.out_pose),
        }

    def new(self, *shape: int) -> Tensor:
        """Memory for numbers of this shape."""
        return self.inputs.poses.new_empty(shape)

    def num_slots(self, tile: Tile) -> int:
        """Groups of children, each with a partial sum of its own: enough to fill the device."""
        wanted = tile.programs(self.processors) // -(-self.batch // tile.rows)
        affordable = max(_PARTIAL_BYTES, 2 * self.inputs.weight.numel()) // (4 * self.batch * self.parts)
        kids = -(-self.in_caps // max(1, min(wanted, affordable, self.in_caps)))
        return -(-self.in_caps // kids)

    @property
    def parts(self) -> int:
        """Numbers that describe the parents of a sample."""
        return self.num_out * self.out_pose

    def over_children(
        self, kernel: Any, tile: Tile, slots: int, tensors: tuple[Tensor, ...], *rest: Any, **constants: Any
    ) -> None:
        """Launches a pass whose programs each see one tile of samples and the children of one slot."""
        kernel[(slots, -(-self.batch // tile.rows))](
            *self.inputs,
            *tensors,
            self.batch,
            self.in_caps,
            self.matrices,
            -(-self.in_caps // slots),
            *rest,
            D=self.in_pose,
            ROWS=tile.rows,
            **self.sizes,
            **constants,
            num_warps=tile.warps,
            maxnreg=tile.registers,
        )

    def over_samples(self, kernel: Any, slots: int, *tensors: Tensor, **constants: Any) -> None:
        """Launches a kernel whose programs each see one sample and a few of its parents."""
        at_once = max(1, 64 // self.sizes["POSE"])
        kernel[(self.batch, -(-self.num_out // at_once))](
            *tensors,
            slots,
            self.batch * self.parts,
            **{**self.sizes, "OUT": at_once},
            **constants,
            num_warps=4,
        )


def route(
    inputs: DistanceInputs, bias: Tensor | None, iterations: int, sharpness: float, keep: bool
) -> DistanceState:
    """All rounds; `keep` the couplings of the last."""
    layer = _Layer(inputs, sharpness)
    parents = (layer.batch, layer.num_out, layer.out_pose)
    state = DistanceState(
        poses=layer.new(*parents),
        coupling=layer.new(layer.batch, layer.in_caps, layer.num_out) if keep else layer.new(0),
        pooled=layer.new(iterations, *parents),
        targets=layer.new(iterations - 1, *parents),
        means=layer.new(iterations - 1, layer.batch),
    )
    slots = layer.num_slots(layer.tiles.pool)
    partial, distances = (
        layer.new(slots, *parents),
        layer.new(layer.batch, layer.num_slots(layer.tiles.distance)),
    )
    with torch.cuda.device_of(inputs.poses):
        for step in range(iterations):
            last = step == iterations - 1
            _pool(layer, state, step, distances, partial, keep=keep and last)
            layer.over_samples(
                squash_kernel,
                slots,
                partial,
                partial if bias is None else bias,
                state.pooled[step],
                partial,  # not read
                state.poses if last else state.targets[step],
                BIAS=bias is not None,
                FIRST=False,
                LAST=True,
            )
    return state


def _pool(
    layer: _Layer, state: DistanceState, step: int, distances: Tensor, partial: Tensor, *, keep: bool
) -> None:
    """Partial sums of round `step`, whose mean distance is taken first."""
    slots, even = distances.shape[1], step == 0
    target, mean = (partial, partial) if even else (state.targets[step - 1], state.means[step - 1])
    if not even:
        layer.over_children(distance_kernel, layer.tiles.distance, slots, (target, distances))
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
    grad: Tensor, inputs: DistanceInputs, state: DistanceState, sharpness: float
) -> DistanceGrads:
    """Gradients, from that of the result."""
    layer, iterations = _Layer(inputs, sharpness), state.pooled.shape[0]
    grad_pooled = torch.empty_like(state.pooled)
    slots = layer.num_slots(layer.tiles.target_grad)
    partial = layer.new(slots, *state.poses.shape)
    with torch.cuda.device_of(inputs.poses):
        _squash_grad(layer, grad, state.pooled[-1], grad_pooled[-1])
        for step in reversed(range(1, iterations)):
            layer.over_children(
                target_grad_kernel,
                layer.tiles.target_grad,
                slots,
                (state.targets[step - 1], state.means[step - 1], grad_pooled[step], partial),
                sharpness,
            )
            _squash_grad(layer, partial, state.pooled[step - 1], grad_pooled[step - 1])
        poses, activations, weight = _votes_grad(layer, state, grad_pooled)
    return DistanceGrads(poses, activations, weight, grad_pooled.sum((0, 1)))


def _squash_grad(layer: _Layer, grad: Tensor, pooled: Tensor, result: Tensor) -> None:
    """The squash's derivative, for a gradient or the slots that add up to it."""
    in_slots = grad.dim() == 4
    layer.over_samples(
        squash_grad_kernel,
        grad.shape[0] if in_slots else 0,
        grad,
        grad,
        pooled,
        result,
        torch.empty_like(result) if in_slots else result,  # nobody asks for the sum again
        GRAD=not in_slots,
        PARTIAL=in_slots,
    )


def _votes_grad(layer: _Layer, state: DistanceState, grad_pooled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of poses, activations and weight."""
    inputs, tile = layer.inputs, layer.tiles.votes_grad
    blocks, voters = -(-layer.in_pose // tile.rows), layer.batch * layer.in_caps // layer.matrices
    wanted = tile.programs(layer.processors) // (blocks * layer.matrices)
    affordable = max(_PARTIAL_BYTES, 4 * inputs.weight.numel()) // (4 * inputs.weight.numel())
    span = -(-voters // max(1, min(wanted, affordable, voters)))
    splits = -(-voters // span)
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
        span,
        state.pooled.shape[0],
        layer.sharpness,
        D=layer.in_pose,
        IN=tile.rows,
        **layer.sizes,
        num_warps=tile.warps,
        maxnreg=tile.registers,
    )
    return grad_poses, grad_activations, grad_weight[0] if splits == 1 else grad_weight.sum(0)
