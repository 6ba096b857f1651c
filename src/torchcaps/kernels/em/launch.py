"""Launches of fused EM routing on CUDA, in float32: votes are computed where they are needed, never stored.

A round is one pass over windows (`fit_kernel`), which fits the parents and scores the votes under them, and
one small kernel (`total_kernel`) that sums each child's scores over all parents that compete for it.
Backwards it is the same pair (`fit_grad_kernel`, `share_mean_kernel`); then `votes_grad_kernel` writes the
gradient of the votes, for as many windows at a time as fit in 128 MB, and two matrix products turn it into
those of poses and matrices. No sum uses atomics.

Beside inputs and results a layer keeps `r - 1` numbers for each pair of child and parent, and `r` more while
its backward pass runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton import cdiv

from .backward_kernels import fit_grad_kernel, share_mean_kernel, votes_grad_kernel
from .forward_kernels import fit_kernel, total_kernel
from .state import EMGrads, EMGrid, EMInputs, EMScales, EMState

_VOTE_BYTES = 128 << 20
_BLOCK = 32  # children of a program of the small kernels


@dataclass(frozen=True)
class Tile:
    """Children and parent types that a program takes at a time, and its warps."""

    kids: int
    types: int
    warps: int


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tiles of the passes that fit parents, forwards and backwards, and of the gradient of the votes."""

    fit: Tile
    votes: Tile


def choose_tiles(windows: int, types: int, pose: int) -> Tiles:
    """Tiles for poses of `pose` numbers, as measured on an H200; few windows take more children at a time."""
    out = triton.next_power_of_2(types)
    fit, votes = min(out, max(1, 128 // pose)), min(out, max(1, 256 // pose))
    if windows * cdiv(types, fit) < 1024:
        few = Tile(16, fit, min(max(fit * pose // 8, 1), 8))
        return Tiles(fit=few, votes=few)
    return Tiles(fit=Tile(1, fit, 1), votes=Tile(2, votes, 2))


class _Layer:
    """One call's inputs with the settings that its launches share."""

    def __init__(self, inputs: EMInputs, grid: EMGrid) -> None:
        poses, _, matrices, offsets = self.inputs = inputs
        self.grid = grid
        self.windows, self.children, in_pose = poses.shape
        _, in_columns, self.types, columns = matrices.shape
        rows = in_pose // in_columns
        self.pose = rows * columns
        sides = triton.next_power_of_2(rows), triton.next_power_of_2(columns)
        self.tiles = choose_tiles(self.windows, self.types, sides[0] * sides[1])
        self.sizes = {
            "C": self.children,
            "J": self.types,
            "ROWS": rows,
            "P": in_columns,
            "COLUMNS": columns,
            "R": sides[0],
            "D": sides[1],
            "OFFSET": offsets is not None,
        }

    def new(self, *shape: int) -> Tensor:
        """Memory for numbers of this shape."""
        return self.inputs.poses.new_empty(shape)

    def over_windows(self, kernel: Any, tile: Tile, windows: int, *arguments: Any, **constants: Any) -> None:
        """Launches a pass whose programs each see one window and some of its types."""
        poses, activations, matrices, offsets = self.inputs
        kernel[(windows, cdiv(self.types, tile.types))](
            poses,
            activations,
            matrices,
            matrices if offsets is None else offsets,
            *arguments,
            KIDS=tile.kids,
            OUT=tile.types,
            **self.sizes,
            **constants,
            num_warps=tile.warps,
        )

    def over_children(self, kernel: Any, *arguments: Any, **constants: Any) -> None:
        """Launches a kernel whose programs each see some children of a map, in all their windows."""
        rows, columns, side, stride = self.grid
        types = self.children // side**2
        on_map = (stride * (rows - 1) + side) * (stride * (columns - 1) + side) * types
        count = self.windows // (rows * columns) * on_map
        kernel[(cdiv(count, _BLOCK),)](
            *arguments,
            count,
            J=self.types,
            OUT=triton.next_power_of_2(self.types),
            TYPES=types,
            WINDOW_ROWS=rows,
            WINDOW_COLUMNS=columns,
            SIDE=side,
            STRIDE=stride,
            BLOCK=_BLOCK,
            **constants,
        )


def fit(inputs: EMInputs, costs: tuple[Tensor, Tensor], grid: EMGrid, scales: EMScales) -> EMState:
    """All rounds, given the activation and vote costs; the last means and logits are the result."""
    layer, rounds = _Layer(inputs, grid), scales.iterations
    parents, pairs = (rounds, layer.windows, layer.types), (layer.windows, layer.children, layer.types)
    state = EMState(
        means=layer.new(*parents, layer.pose),
        variances=layer.new(*parents, layer.pose),
        masses=layer.new(*parents),
        logits=layer.new(*parents),
        scores=layer.new(rounds - 1, *pairs),
        shifts=layer.new(rounds, *pairs[:2]),
    )
    with torch.cuda.device_of(inputs.poses):
        for step in range(rounds):
            first, last = step == 0, step == rounds - 1
            scores = state.shifts if first else state.scores[step - 1]  # not read in the first round
            layer.over_children(total_kernel, scores, state.shifts[step], EVEN=first)
            layer.over_windows(
                fit_kernel,
                layer.tiles.fit,
                layer.windows,
                scores,
                state.shifts[step],
                *costs,
                state.means[step],
                state.variances[step],
                state.masses[step],
                state.logits[step],
                scores if last else state.scores[step],
                scales.temperature(step),
                1 / scales.even_mass,
                scales.min_variance,
                FIRST=first,
                LAST=last,
            )
    return state


class _Rates(NamedTuple):
    """What the rounds of a backward pass hand on, with axes as in `EMState`."""

    slopes: Tensor  # dL/dmean over the mass
    curves: Tensor  # dL/dvariance over the mass
    shares: Tensor  # dL/dw, w being coupling times activation; (iterations, N, C, O)
    share_means: Tensor  # its mean over all parents of a child, from the second round on
    logits: Tensor  # dL/dlogit
    activations: Tensor  # dL/da, (N, C)


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
        shares=layer.new(rounds, layer.windows, layer.children, layer.types),
        share_means=torch.empty_like(state.shifts[1:]),
        logits=torch.empty_like(state.logits),
        activations=torch.empty_like(inputs.activations),
    )
    rates.logits[-1] = grads[1]
    with torch.cuda.device_of(inputs.poses):
        for step in reversed(range(rounds)):
            _round_backward(layer, step, grads[0], vote_cost, state, rates, scales)
        grad_poses, grad_matrices = _through_votes(layer, state, rates)
    for step in range(rounds):
        rates.logits[step].mul_(scales.temperature(step))
    per_vote = layer.pose / scales.even_mass
    return EMGrads(
        grad_poses,
        rates.activations,
        grad_matrices,
        rates.logits.sum((0, 1)),
        (rates.logits * state.masses).sum((0, 1)) * -per_vote,
    )


def _round_backward(
    layer: _Layer,
    step: int,
    grad_means: Tensor,
    vote_cost: Tensor,
    state: EMState,
    rates: _Rates,
    scales: EMScales,
) -> None:
    first, last = step == 0, step == scales.iterations - 1
    unread = grad_means
    later = (
        (unread,) * 4
        if last
        else (state.scores[step], state.shifts[step + 1], rates.shares[step + 1], rates.share_means[step])
    )
    layer.over_windows(
        fit_grad_kernel,
        layer.tiles.fit,
        layer.windows,
        *later,
        vote_cost,
        state.means[step],
        state.variances[step],
        state.masses[step],
        state.logits[step],
        grad_means,
        rates.logits[step],
        rates.slopes[step],
        rates.curves[step],
        rates.shares[step],
        scales.temperature(step),
        1 / scales.even_mass,
        scales.min_variance,
        LAST=last,
    )
    layer.over_children(
        share_mean_kernel,
        unread if first else state.scores[step - 1],
        state.shifts[step],
        rates.shares[step],
        unread if first else rates.share_means[step - 1],
        rates.activations,
        EVEN=first,
        ADD=not last,
    )


def _through_votes(layer: _Layer, state: EMState, rates: _Rates) -> tuple[Tensor, Tensor]:
    """Gradients of poses and matrices, the votes' being formed for some windows at a time."""
    poses, _, matrices, _ = layer.inputs
    rows, in_columns, columns = (layer.sizes[name] for name in ("ROWS", "P", "COLUMNS"))
    width, children = layer.types * columns, layer.children
    at_once = max(1, min(layer.windows, _VOTE_BYTES // (4 * children * rows * width)))
    memory = layer.new(children * at_once * rows * width)
    by_child = poses.view(layer.windows, children, rows, in_columns).transpose(0, 1)
    flat = matrices.view(children, in_columns, width)
    grad_poses, grad_matrices = torch.empty_like(poses), torch.zeros_like(flat)
    for first in range(0, layer.windows, at_once):
        some = min(at_once, layer.windows - first)
        part = slice(first, first + some)
        grad_votes = memory[: children * some * rows * width].view(children, some * rows, width)
        _votes_grad(layer, state, rates, grad_votes, first, some)
        spread = torch.bmm(grad_votes, flat.mT).view(children, some, -1)
        grad_poses[part] = spread.transpose(0, 1)
        chosen = by_child[:, part].reshape(children, some * rows, in_columns)
        grad_matrices.baddbmm_(chosen.mT, grad_votes)
    return grad_poses, grad_matrices.view(matrices.shape)


def _votes_grad(
    layer: _Layer, state: EMState, rates: _Rates, result: Tensor, first: int, windows: int
) -> None:
    layer.over_windows(
        votes_grad_kernel,
        layer.tiles.votes,
        windows,
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
    )
