"""What a dimension of a capsule means: reconstructions with one number changed (Sabour 2017, figure 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

OFFSETS = tuple(round(-0.25 + 0.05 * step, 2) for step in range(11))


@torch.no_grad()
def perturb_capsule(
    decode: Callable[[Tensor, Tensor], Tensor],
    poses: Float[Tensor, "1 classes pose"],
    chosen: Int[Tensor, " 1"],
    offsets: Sequence[float] = OFFSETS,
) -> Float[Tensor, "pose offsets channels height width"]:
    """Each dimension of the chosen capsule of one image moved by each offset, and decoded."""
    dimensions = poses.shape[-1]
    steps = poses.new_tensor(offsets)
    moves = torch.eye(dimensions, dtype=poses.dtype, device=poses.device)[:, None] * steps[:, None]
    moved = poses.repeat(dimensions * len(offsets), 1, 1)
    moved[:, chosen[0]] += moves.flatten(0, 1)
    drawn = decode(moved, chosen.expand(len(moved)))
    return drawn.view(dimensions, len(offsets), *drawn.shape[1:])
