"""Fused vote-and-route, dynamic routing, in plain PyTorch operations: the CPU path, exact in float64 too.

The votes are linear in the poses, so `vote . direction` is `pose . (matrix @ direction)`: a matrix product
with the out capsule's direction, then D products a child instead of P, and `sum_i c_ij vote_ij` is the same
product turned round. The batch is cut into tiles whose intermediates, `[J, tile, D, I]`, stay in the cache;
the votes, `[B, I, J, P]`, never exist. Wide layers have tiles of 8 samples or 128 MB, at least one sample,
whose intermediates are `weight.numel() / P` numbers. Any size that fits in memory is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from torchcaps.core import squash

from ..squash import squash_backward
from .state import RouteState

_TILE_ELEMENTS = 1 << 20  # floats of one intermediate: 4 MB, of which a handful share the last-level cache
_MOST_ELEMENTS = 1 << 25  # 128 MB, where less than 8 samples would be read beside much more weight


def route(poses: Tensor, weight: Tensor, bias: Tensor | None, iterations: int, leaky: bool) -> RouteState:
    """Output poses of the last iteration, and what the backward pass and the couplings are computed from."""
    batch, (_, _, num_out, out_pose) = poses.shape[0], weight.shape
    pooled = poses.new_empty(iterations, batch, num_out, out_pose)
    direction = poses.new_empty(iterations, batch, num_out, out_pose)
    pooled[0] = _pool_uniformly(poses, weight, leaky)
    direction[0] = 0
    if bias is not None:
        pooled[0] += bias
    if iterations > 1:
        children, matrices = _by_matrix(poses, weight), _by_out_capsule(weight)
        scratch: list[Tensor] = []
        for tile in _tiles(poses, weight):
            scratch = scratch or _scratch(children[tile], matrices, 2)
            _route_tile(children[tile], matrices, bias, (pooled[:, tile], direction[:, tile]), leaky, scratch)
    return RouteState(squash(pooled[-1]), pooled, direction)


def route_backward(
    grad: Tensor, poses: Tensor, weight: Tensor, state: RouteState, full: bool, leaky: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of poses, weight and bias; `full` goes through the couplings of all iterations."""
    iterations = state.pooled.shape[0]
    children, matrices = _by_matrix(poses, weight), _by_out_capsule(weight)
    grad_children = torch.zeros_like(children)
    grad_matrices = torch.zeros_like(matrices)
    grad_pooled = torch.zeros_like(state.pooled)
    if iterations > 1:
        scratch: list[Tensor] = []
        for tile in _tiles(poses, weight):
            scratch = scratch or _scratch(children[tile], matrices, 3)
            _tile_backward(
                (children[tile], matrices),
                (state.pooled[:, tile], state.direction[:, tile]),
                (grad[tile], grad_pooled[:, tile]),
                (grad_children[tile], grad_matrices),
                full,
                leaky,
                scratch,
            )
    else:
        grad_pooled[0] = squash_backward(state.pooled[0], grad)
    grad_weight = grad_matrices.permute(2, 1, 0, 3).contiguous()
    grad_poses = grad_children.permute(0, 2, 3, 1).contiguous().view(poses.shape)
    if iterations == 1 or full:
        _add_uniform_backward(grad_pooled[0], poses, weight, leaky, grad_poses, grad_weight)
    return grad_poses, grad_weight, grad_pooled.sum((0, 1))


def coupling(poses: Tensor, weight: Tensor, direction: Tensor, leaky: bool) -> Tensor:
    """Couplings `[batch, in_caps, out_caps]` that the votes' agreement with `direction` gives."""
    children, matrices = _by_matrix(poses, weight), _by_out_capsule(weight)
    result = poses.new_empty(*poses.shape[:2], weight.shape[2])
    scratch: list[Tensor] = []
    for tile in _tiles(poses, weight):
        scratch = scratch or _scratch(children[tile], matrices, 2)
        spread = _spread(direction[tile], matrices, scratch[0])
        split = _softmax(_dot(spread, children[tile], scratch[1]), leaky)
        result[tile] = split.flatten(2).permute(1, 2, 0)
    return result


def _by_matrix(poses: Tensor, weight: Tensor) -> Tensor:
    """Poses as `[batch, in_pose, position, matrix]`; child i uses matrix i % G, so matrices run fastest."""
    batch, num_in, in_pose = poses.shape
    num_matrices = weight.shape[0]
    return poses.view(batch, num_in // num_matrices, num_matrices, in_pose).permute(0, 3, 1, 2).contiguous()


def _by_out_capsule(weight: Tensor) -> Tensor:
    """Weights as `[out_caps, in_pose, matrix, out_pose]`, so that each out capsule is one matrix product."""
    return weight.permute(2, 1, 0, 3).contiguous()


def _tiles(poses: Tensor, weight: Tensor) -> Iterator[slice]:
    batch, num_in, in_pose = poses.shape
    num_matrices, _, num_out, _ = weight.shape
    per_sample = max(1, num_out * max(num_in, in_pose * num_matrices))
    step = max(1, _TILE_ELEMENTS // per_sample, min(8, _MOST_ELEMENTS // per_sample))
    return (slice(start, min(start + step, batch)) for start in range(0, batch, step))


def _flat(poses: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Poses as `[batch, position, matrix * in_pose]`, weight as `[matrix * in_pose, out_caps * out_pose]`."""
    batch, num_in, in_pose = poses.shape
    num_matrices, _, num_out, out_pose = weight.shape
    rows = num_matrices * in_pose
    return poses.view(batch, num_in // num_matrices, rows), weight.view(rows, num_out * out_pose)


def _pool_uniformly(poses: Tensor, weight: Tensor, leaky: bool) -> Tensor:
    flat_poses, flat_weight = _flat(poses, weight)
    pooled = flat_poses.sum(1) @ flat_weight
    return pooled.unflatten(1, weight.shape[2:]) / (weight.shape[2] + leaky)


def _add_uniform_backward(
    grad_pooled: Tensor, poses: Tensor, weight: Tensor, leaky: bool, grad_poses: Tensor, grad_weight: Tensor
) -> None:
    flat_poses, flat_weight = _flat(poses, weight)
    share = grad_pooled.flatten(1) / (weight.shape[2] + leaky)
    grad_weight.view_as(flat_weight).addmm_(flat_poses.sum(1).mT, share)
    grad_poses.view_as(flat_poses).add_((share @ flat_weight.mT).unsqueeze(1))


def _scratch(children: Tensor, matrices: Tensor, count: int) -> list[Tensor]:
    """Buffers for one tile's intermediates: fresh memory for each would cost more than the arithmetic."""
    shape = (matrices.shape[0], children.shape[0], *matrices.shape[1:3])
    return [children.new_empty(shape) for _ in range(count)]


def _route_tile(
    children: Tensor,
    matrices: Tensor,
    bias: Tensor | None,
    state: tuple[Tensor, Tensor],
    leaky: bool,
    scratch: list[Tensor],
) -> None:
    """Iterations 2 to r for the samples of one tile; fills `pooled` and `direction`."""
    pooled, direction = state
    for step in range(1, pooled.shape[0]):
        torch.add(direction[step - 1], squash(pooled[step - 1]), out=direction[step])
        spread = _spread(direction[step], matrices, scratch[0])
        split = _softmax(_dot(spread, children, scratch[1]), leaky)
        pooled[step] = _pool(_weigh(split, children, scratch[1]), matrices)
        if bias is not None:
            pooled[step] += bias


def _tile_backward(
    inputs: tuple[Tensor, Tensor],
    state: tuple[Tensor, Tensor],
    grads: tuple[Tensor, Tensor],
    results: tuple[Tensor, Tensor],
    full: bool,
    leaky: bool,
    scratch: list[Tensor],
) -> None:
    """Iterations r to 2 of one tile, backwards: fills `grad_pooled`, adds to the two results."""
    (children, matrices), (pooled, direction) = inputs, state
    (grad, grad_pooled), (grad_children, grad_matrices) = grads, results
    grad_direction, product = torch.zeros_like(grad), scratch[2]
    for step in reversed(range(1, pooled.shape[0])):
        grad_pooled[step] = squash_backward(pooled[step], grad)
        towards, along = grad_pooled[step], direction[step]
        spread, grad_spread = _spread(along, matrices, scratch[0]), _spread(towards, matrices, scratch[1])
        split = _softmax(_dot(spread, children, product), leaky)
        _add_outer(grad_matrices, _weigh(split, children, product), towards)
        grad_children += _collect(split, grad_spread, product)
        if not full:
            return
        grad_split = _dot(grad_spread, children, product)
        grad_logits = split * (grad_split - (split * grad_split).sum(0))
        grad_children += _collect(grad_logits, spread, product)
        weighed = _weigh(grad_logits, children, product)
        _add_outer(grad_matrices, weighed, along)
        grad_direction += _pool(weighed, matrices)
        grad = grad_direction  # v(q) enters every later direction
    grad_pooled[0] = squash_backward(pooled[0], grad)


def _spread(targets: Tensor, matrices: Tensor, out: Tensor) -> Tensor:
    """`matrix @ target` as `[out_caps, batch, in_pose, matrix]`; times a pose it is `vote . target`."""
    spread = out[:, : targets.shape[0]]
    torch.bmm(targets.transpose(0, 1), matrices.flatten(1, 2).mT, out=spread.flatten(2))
    return spread


def _pool(weighed: Tensor, matrices: Tensor) -> Tensor:
    """The weighed poses' votes, summed over children: `[batch, out_caps, out_pose]`."""
    pooled = torch.bmm(weighed[:, :, 0], matrices[:, 0])
    for number in range(1, matrices.shape[1]):  # one long sum over both axes would round twice as much
        pooled.baddbmm_(weighed[:, :, number], matrices[:, number])
    return pooled.transpose(0, 1)


def _add_outer(total: Tensor, weighed: Tensor, targets: Tensor) -> None:
    """Adds `sum_batch weighed (x) target`, the gradient of the matrices, to `total`."""
    total.flatten(1, 2).baddbmm_(weighed.flatten(2).mT, targets.transpose(0, 1))


def _dot(spread: Tensor, children: Tensor, out: Tensor) -> Tensor:
    """`vote . target` of every child, `[out_caps, batch, position, matrix]`."""
    if children.shape[2] == 1:
        product = torch.mul(spread, children.squeeze(2), out=out[:, : spread.shape[1]])
        return product.sum(2, keepdim=True)
    return torch.einsum("obpg,bpng->obng", spread, children)


def _weigh(split: Tensor, children: Tensor, out: Tensor) -> Tensor:
    """Poses weighed for every out capsule and summed over positions, `[out_caps, batch, in_pose, matrix]`."""
    if children.shape[2] == 1:
        return torch.mul(split, children.squeeze(2), out=out[:, : split.shape[1]])
    return torch.einsum("obng,bpng->obpg", split, children)


def _collect(split: Tensor, spread: Tensor, out: Tensor) -> Tensor:
    """`sum_j split_j spread_j`, the gradient of the poses as `[batch, in_pose, position, matrix]`."""
    if split.shape[2] == 1:
        return torch.mul(split, spread, out=out[:, : split.shape[1]]).sum(0).unsqueeze(2)
    return torch.einsum("obng,obpg->bpng", split, spread)


def _softmax(logits: Tensor, leaky: bool) -> Tensor:
    """Couplings over the out capsules (first axis); `leaky` adds one logit fixed at 0 and drops its share."""
    if not leaky:
        return torch.softmax(logits, 0)
    return torch.softmax(torch.cat([logits, torch.zeros_like(logits[:1])]), 0)[:-1]
