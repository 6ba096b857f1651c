"""Fused EM routing of matrix capsules: the votes are never stored, nor anything else with a pose's axis.

Formulas and log-space form as in `routing.em`; parents of all windows that a child stands in compete for it,
as in `layers.em_conv2d`. Plain PyTorch keeps several tensors of `O(N C O H)` numbers for each round: 340 MB
each for 64/8/16/16 at batch 128. Here the largest that are kept are `O(N C O)`, 21 MB, on a CPU `O(N O H)`,
and votes and their gradient exist for some windows at a time.

`cpu.py` runs on any device and in float64; `compiled.py` on a CPU in float32, where numba is installed;
`launch.py` on CUDA in float32, for any number of children, up to 256 parent types, and poses of up to 256
numbers, with rows and columns rounded up to powers of two.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import without_autocast

from ..availability import has_numba, is_for_kernel, kernel_obstacle, round_up
from ..operator import once_differentiable, operator
from . import cpu
from .state import EMGrid, EMInputs, EMScales, EMState

_MOST_NUMBERS = 256  # of a pose: a tile of votes must fit in registers
_MOST_TYPES = 256  # a child's scores in one window must as well
_FEWEST_CHILDREN = 8  # of a window, on a CPU: along shorter rows the plain path is faster
_FEWEST_NUMBERS = 1 << 12  # of all votes, on a CPU: below them the number of operations decides
_WORTH_COMPILING = 1 << 24  # of all votes, on a CPU: fewer would not gain the seconds that compiling takes


def fused_em_routing(
    poses: Float[Tensor, "batch rows columns in_caps in_pose"],
    activations: Float[Tensor, "batch rows columns in_caps"],
    weight: Float[Tensor, "matrices in_columns out_types out_columns"],
    *,
    costs: tuple[Float[Tensor, " out_types"], Float[Tensor, " out_types"]],
    window: tuple[int, int],
    scales: EMScales,
    offsets: Float[Tensor, "in_caps out_pose"] | None = None,
) -> tuple[
    Float[Tensor, "batch rows columns out_types out_pose"], Float[Tensor, "batch rows columns out_types"]
]:
    """Means as poses, and activations, differentiable in all tensors but `offsets`.

    Half precision is computed in float32; the result has the dtype of the poses.

    Args:
        poses: Of each window's children, in the order (type, row, column); matrices flattened row by row.
        activations: Of the same children.
        weight: Child i votes with `weight[i % matrices]`.
        costs: Activation cost and vote cost.
        window: Side and stride; parents of one sample compete as if the windows had no padding. (1, 1) for a
            layer of a single window.
        scales: Settings of the loop.
        offsets: Added to the votes of each child.
    """
    if reason := em_unsupported_reason(poses, weight):
        raise ValueError(reason)
    batch, rows, columns, in_caps, _ = poses.shape
    matrices = weight.repeat(in_caps // weight.shape[0], 1, 1, 1)
    dtype = torch.promote_types(poses.dtype, torch.float32)
    mean, logit, *_ = _em_op(
        poses.flatten(0, 2).to(dtype).contiguous(),
        activations.flatten(0, 2).to(dtype).contiguous(),
        matrices.to(dtype),
        None if offsets is None else offsets.to(dtype).contiguous(),
        *(cost.to(dtype).contiguous() for cost in costs),
        [rows, columns, *window],
        scales.iterations,
        list(scales[1:]),
    )
    where = (batch, rows, columns)
    return mean.to(poses.dtype).unflatten(0, where), logit.sigmoid().to(poses.dtype).unflatten(0, where)


def em_unsupported_reason(poses: Tensor, weight: Tensor, *, insist: bool = True) -> str | None:
    """Why `fused_em_routing` cannot take these inputs, in one sentence; None when it can.

    Without `insist` there is also a reason where plain PyTorch is faster.
    """
    if not poses.is_floating_point() or poses.device != weight.device:
        got = f"{poses.dtype} on {poses.device} and {weight.dtype} on {weight.device}"
        return f"poses and weight must be floating point and on one device, got {got}"
    if poses.numel() == 0:
        return "there is nothing to route"
    if not is_for_kernel(poses):
        return None if insist or poses.device.type != "cpu" else _faster_plain(poses, weight)
    return kernel_obstacle("EM routing", poses, weight) or _too_large(poses, weight)


def _faster_plain(poses: Tensor, weight: Tensor) -> str | None:
    numbers = poses.numel() // weight.shape[1] * weight.shape[2] * weight.shape[3]
    if poses.shape[-2] >= _FEWEST_CHILDREN and numbers >= _FEWEST_NUMBERS:
        return None
    return f"with {poses.shape[-2]} children and {numbers} vote numbers the plain path is faster on a CPU"


def _too_large(poses: Tensor, weight: Tensor) -> str | None:
    rows, columns = poses.shape[-1] // weight.shape[1], weight.shape[3]
    if round_up(rows) * round_up(columns) > _MOST_NUMBERS:
        return f"poses of {rows}x{columns} exceed {_MOST_NUMBERS} numbers"
    if weight.shape[2] > _MOST_TYPES:
        return f"the fused kernel takes at most {_MOST_TYPES} parent types, not {weight.shape[2]}"
    if max(poses.numel(), poses.shape[-2] * weight[0].numel()) >= 2**31:
        return "the fused kernel takes fewer than 2**31 numbers in poses and in matrices"
    return None


def _backend(poses: Tensor, matrices: Tensor) -> ModuleType:
    """The module that computes these inputs."""
    if is_for_kernel(poses):
        from . import launch  # only here: a CPU install has no triton

        return launch
    if poses.device.type == "cpu" and poses.dtype == torch.float32 and _is_worth_compiling(poses, matrices):
        from . import compiled  # only here: numba is an extra, and slow to import

        return compiled
    return cpu


def _is_worth_compiling(poses: Tensor, matrices: Tensor) -> bool:
    votes = poses.numel() // matrices.shape[1] * matrices.shape[2] * matrices.shape[3]
    return votes >= _WORTH_COMPILING and has_numba()


_INPUTS = "Tensor poses, Tensor activations, Tensor matrices, Tensor? offsets"
_SETTINGS = "int[] grid, int iterations, float[] scales"


@operator(
    "em_routing",
    f"({_INPUTS}, Tensor activation_cost, Tensor vote_cost, {_SETTINGS})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _em_op(  # noqa: PLR0913  an operator takes its tensors one by one
    poses: Tensor,
    activations: Tensor,
    matrices: Tensor,
    offsets: Tensor | None,
    activation_cost: Tensor,
    vote_cost: Tensor,
    grid: list[int],
    iterations: int,
    scales: list[float],
) -> tuple[Tensor, ...]:
    inputs = EMInputs(poses, activations, matrices, offsets)
    costs = activation_cost, vote_cost
    with without_autocast(poses):  # autocast also acts inside registered operators
        state = _backend(poses, matrices).fit(inputs, costs, EMGrid(*grid), EMScales(iterations, *scales))
    return state.means[-1].clone(), state.logits[-1].clone(), *state


@operator(
    "em_routing_backward",
    f"(Tensor grad_mean, Tensor grad_logit, {_INPUTS}, Tensor vote_cost, Tensor means, "
    f"Tensor variances, Tensor masses, Tensor logits, Tensor scores, Tensor shifts, {_SETTINGS})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _em_backward_op(  # noqa: PLR0913
    grad_mean: Tensor,
    grad_logit: Tensor,
    poses: Tensor,
    activations: Tensor,
    matrices: Tensor,
    offsets: Tensor | None,
    vote_cost: Tensor,
    means: Tensor,
    variances: Tensor,
    masses: Tensor,
    logits: Tensor,
    scores: Tensor,
    shifts: Tensor,
    grid: list[int],
    iterations: int,
    scales: list[float],
) -> tuple[Tensor, ...]:
    with without_autocast(poses):
        grads = _backend(poses, matrices).fit_backward(
            (grad_mean.contiguous(), grad_logit.contiguous()),
            EMInputs(poses, activations, matrices, offsets),
            vote_cost,
            EMState(means, variances, masses, logits, scores, shifts),
            EMGrid(*grid),
            EMScales(iterations, *scales),
        )
    return tuple(grads)


@_em_op.register_fake
def _(poses, activations, matrices, offsets, activation_cost, vote_cost, grid, iterations, scales):  # noqa: ANN001, ANN202, PLR0913
    windows, children, in_pose = poses.shape
    _, in_columns, types, out_columns = matrices.shape
    pose = in_pose // in_columns * out_columns
    splits = iterations if is_for_kernel(poses) else 0  # on a CPU they are found again
    shapes = [
        (windows, types, pose),
        (windows, types),
        (iterations, windows, types, pose),
        (iterations, windows, types, pose),
        (iterations, windows, types),
        (iterations, windows, types),
        (max(splits - 1, 0), windows, children, types),
        (splits, windows, children),
    ]
    return tuple(poses.new_empty(shape) for shape in shapes)


@_em_backward_op.register_fake
def _(grad_mean, grad_logit, poses, activations, matrices, offsets, vote_cost, *_):  # noqa: ANN001, ANN002, ANN202
    return tuple(torch.empty_like(x) for x in (poses, activations, matrices, vote_cost, vote_cost))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, _, vote_cost, grid, iterations, scales = inputs
    ctx.settings = grid, iterations, scales
    ctx.save_for_backward(*tensors, vote_cost, *output[2:])
    ctx.mark_non_differentiable(*output[2:])


def _backward(ctx: Any, grad_mean: Tensor, grad_logit: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    poses, activations, matrices, activation_cost, vote_cost = _em_backward_op(
        grad_mean, grad_logit, *ctx.saved_tensors, *ctx.settings
    )
    return poses, activations, matrices, None, activation_cost, vote_cost, None, None, None


_em_op.register_autograd(_backward, setup_context=_save)
once_differentiable(_em_backward_op)
