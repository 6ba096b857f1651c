"""Fused EM routing on CUDA, in float32: votes are computed where they are needed and never stored.

A round is one pass over windows (`fit_kernel`), which fits the parents and scores the votes under them, and
one small kernel (`total_kernel`) that sums each child's scores over the windows it stands in. Backwards it is
the same pair; then `votes_grad_kernel` writes the gradient of the votes, for as many windows at a time as fit
in 128 MB, and two matrix products turn it into those of poses and matrices. No sum uses atomics.

Beside inputs and results a layer keeps `r - 1` numbers for each pair of child and parent, and as many again
while its backward pass runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .em_state import EMGrads, EMGrid, EMInputs, EMScales, EMState
from .em_triton_grad import fit_grad_kernel, votes_grad_kernel
from .em_triton_kernels import fit_kernel, total_kernel

_VOTE_BYTES = 128 << 20
_BLOCK = 256  # children of `total_kernel`


@dataclass(frozen=True)
class Tile:
    """Parent types that a program loops over, and its warps."""

    types: int
    warps: int


def choose_tile(children: int, types: int, pose: int, windows: int) -> Tile:
    """Sixteen votes' numbers a thread; few windows share their types among more programs."""
    numbers = triton.next_power_of_2(children) * triton.next_power_of_2(pose)
    splits = min(types, -(-1024 // windows))
    return Tile(-(-types // splits), min(max(numbers // 512, 1), 8))


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, inputs: EMInputs, grid: EMGrid) -> None:
        poses, _, matrices, offsets = self.inputs = inputs
        self.grid = grid
        self.windows, self.children, in_pose = poses.shape
        self.types, _, in_columns, out_columns = matrices.shape
        self.pose = in_pose // in_columns * out_columns
        self.tile = choose_tile(self.children, self.types, self.pose, self.windows)
        self.slots = -(-self.types // self.tile.types)
        self.sizes = {
            "C": self.children,
            "J": self.types,
            "ROWS": in_pose // in_columns,
            "P": in_columns,
            "D": out_columns,
            "IN": triton.next_power_of_2(self.children),
            "OUT": self.tile.types,
            "POSE": triton.next_power_of_2(self.pose),
            "OFFSET": offsets is not None,
            "num_warps": self.tile.warps,
        }

    def new(self, *shape: int) -> Tensor:
        return self.inputs.poses.new_empty(shape)

    def over_windows(
        self, kernel: Any, *arguments: Any, windows: int | None = None, **constants: Any
    ) -> None:
        poses, activations, matrices, offsets = self.inputs
        kernel[(windows or self.windows, self.slots)](
            poses,
            activations,
            matrices,
            matrices if offsets is None else offsets,
            *arguments,
            **self.sizes,
            **constants,
        )

    def total(self, values: Tensor, result: Tensor, *, log: bool) -> None:
        """Sums `values` `[slots, windows, children]` over each child's windows."""
        rows, columns, side, stride = self.grid
        types = self.children // side**2
        on_map = (stride * (rows - 1) + side) * (stride * (columns - 1) + side) * types
        count = self.windows // (rows * columns) * on_map
        total_kernel[(-(-count // _BLOCK),)](
            values,
            result,
            count,
            values.shape[0],
            values.stride(0),
            TYPES=types,
            WINDOW_ROWS=rows,
            WINDOW_COLUMNS=columns,
            SIDE=side,
            STRIDE=stride,
            LOG=log,
            BLOCK=_BLOCK,
        )


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """All rounds, given the activation and vote costs; the last means and logits are the result."""
    layer, rounds = _Layer(inputs, grid), scales.iterations
    windows, types, children = layer.windows, layer.types, layer.children
    parents = (rounds, windows, types)
    state = EMState(
        means=layer.new(*parents, layer.pose),
        variances=layer.new(*parents, layer.pose),
        masses=layer.new(*parents),
        logits=layer.new(*parents),
        scores=layer.new(rounds - 1, windows, types, children),
        shifts=layer.new(rounds, windows, children),
    )
    totals = layer.new(layer.slots, windows, children)
    with torch.cuda.device_of(inputs.poses):
        layer.total(totals[:1].fill_(math.log(types)), state.shifts[0], log=True)
        for step in range(rounds):
            last = step == rounds - 1
            layer.over_windows(
                fit_kernel,
                state.scores[step - 1] if step else totals,  # not read then
                state.shifts[step],
                *costs,
                state.means[step],
                state.variances[step],
                state.masses[step],
                state.logits[step],
                totals if last else state.scores[step],
                totals,
                scales.temperature(step),
                1 / scales.even_mass,
                scales.min_variance,
                FIRST=step == 0,
                LAST=last,
            )
            if not last:
                layer.total(totals, state.shifts[step + 1], log=True)
    return state


def fit_backward(
    grads: tuple[Tensor, Tensor],
    inputs: EMInputs,
    vote_cost: Tensor,
    state: EMState,
    grid: EMGrid,
    scales: EMScales,
) -> EMGrads:
    """Gradients, from those of the last means and logits."""
    layer, rounds = _Layer(inputs, grid), scales.iterations
    rates = _Rates(
        slopes=torch.empty_like(state.means),
        curves=torch.empty_like(state.means),
        shares=torch.empty_like(state.scores),
        share_means=torch.empty_like(state.shifts[1:]),
        logits=torch.empty_like(state.logits),
    )
    rates.logits[-1] = grads[1]
    totals = layer.new(rounds, layer.slots, layer.windows, layer.children)
    with torch.cuda.device_of(inputs.poses):
        for step in reversed(range(rounds)):
            _round_backward(layer, step, grads[0], vote_cost, state, rates, totals[step], scales)
        grad_poses, grad_matrices = _through_votes(layer, state, rates)
    heat = rates.logits.new_tensor([scales.temperature(step) for step in range(rounds)]).view(-1, 1, 1)
    grad_costs = heat * rates.logits
    per_vote = layer.pose / scales.even_mass
    return EMGrads(
        grad_poses,
        totals.sum((0, 1)),
        grad_matrices,
        grad_costs.sum((0, 1)),
        (grad_costs * state.masses).sum((0, 1)) * -per_vote,
    )


class _Rates(NamedTuple):
    """What the rounds of a backward pass hand on, with axes as in `EMState`."""

    slopes: Tensor  # dL/dmean over the mass
    curves: Tensor  # dL/dvariance over the mass
    shares: Tensor  # dL/dw of the second round and later ones, w being coupling times activation
    share_means: Tensor  # its mean over all parents of a child
    logits: Tensor  # dL/dlogit


def _round_backward(  # noqa: PLR0913  all that a round reads and writes
    layer: _Layer,
    step: int,
    grad_means: Tensor,
    vote_cost: Tensor,
    state: EMState,
    rates: _Rates,
    totals: Tensor,
    scales: EMScales,
) -> None:
    first, last = step == 0, step == scales.iterations - 1
    unread = totals
    layer.over_windows(
        fit_grad_kernel,
        unread if first else state.scores[step - 1],
        state.shifts[step],
        *(
            (unread,) * 4
            if last
            else (state.scores[step], state.shifts[step + 1], rates.shares[step], rates.share_means[step])
        ),
        vote_cost,
        state.means[step],
        state.variances[step],
        state.masses[step],
        state.logits[step],
        grad_means,
        rates.logits[step],
        rates.slopes[step],
        rates.curves[step],
        unread if first else rates.shares[step - 1],
        totals,
        scales.temperature(step),
        1 / scales.even_mass,
        scales.min_variance,
        FIRST=first,
        LAST=last,
    )
    if not first:
        layer.total(totals, rates.share_means[step - 1], log=False)


def _through_votes(layer: _Layer, state: EMState, rates: _Rates) -> tuple[Tensor, Tensor]:
    """Gradients of poses and matrices, the votes' being formed for some windows at a time."""
    poses, _, matrices, _ = layer.inputs
    rows, in_columns, out_columns = (layer.sizes[name] for name in ("ROWS", "P", "D"))
    width, children = layer.types * out_columns, layer.children
    at_once = max(1, min(layer.windows, _VOTE_BYTES // (4 * children * rows * width)))
    memory = layer.new(children, at_once * rows, width)
    by_child = poses.view(layer.windows, children, rows, in_columns).transpose(0, 1)
    to_poses = matrices.permute(1, 0, 3, 2).reshape(children, width, in_columns)
    grad_poses = torch.empty_like(poses)
    grad_matrices = poses.new_zeros(children, width, in_columns)
    for first in range(0, layer.windows, at_once):
        some = min(at_once, layer.windows - first)
        grad_votes = memory.flatten()[: children * some * rows * width].view(children, some * rows, width)
        _votes_grad(layer, state, rates, grad_votes, first, some)
        part = slice(first, first + some)
        spread = torch.bmm(grad_votes, to_poses).view(children, some, -1)
        grad_poses[part] = spread.transpose(0, 1)
        chosen = by_child[:, part].reshape(children, some * rows, in_columns)
        grad_matrices.baddbmm_(grad_votes.mT, chosen)
    return grad_poses, grad_matrices.view(children, layer.types, out_columns, in_columns).permute(1, 0, 3, 2)


def _votes_grad(
    layer: _Layer, state: EMState, rates: _Rates, result: Tensor, first: int, windows: int
) -> None:
    layer.over_windows(
        votes_grad_kernel,
        state.scores,
        state.shifts,
        rates.shares,
        rates.share_means,
        state.means,
        state.variances,
        rates.slopes,
        rates.curves,
        result,
        first,
        state.means.shape[0],
        layer.windows * layer.types,
        layer.windows * layer.children,
        windows=windows,
    )
