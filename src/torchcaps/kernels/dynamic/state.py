"""What the forward and backward pass of fused dynamic routing hand to each other."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class RouteState(NamedTuple):
    """What a forward pass leaves behind; all of it is small beside the poses."""

    poses: Tensor  # (batch, out_caps, pose), the result
    pooled: Tensor  # (iterations, batch, out_caps, pose): s of each iteration, before the squash
    direction: Tensor  # (iterations, batch, out_caps, pose): sum of earlier output poses; logits = votes . it
