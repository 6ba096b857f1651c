"""Units in which the squares of votes stay finite: one, unless votes are beyond 1e8."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

_LARGEST = 1e8  # of votes taken as they come: their squares, sums of these and products have room in float32
_LARGEST_PRODUCT = 1e36
_LEAST_VARIANCE = 1e-34  # in units, far below the rounding of the largest vote, which is one of them


class InUnits(NamedTuple):
    """Votes in a unit for each parent and component, which carries no gradient: what is undone needs none."""

    votes: Float[Tensor, "*where in_caps out_caps pose"]
    unit: Float[Tensor, "*where out_caps pose"]

    def variance(self, plain: float) -> Float[Tensor, "*where out_caps pose"]:
        """A given variance in squared units, held above zero where a large unit would make it vanish."""
        return (plain / self.unit / self.unit).clamp(min=min(plain, _LEAST_VARIANCE))

    @property
    def log_unit(self) -> Float[Tensor, "*where out_caps"]:
        """Logs of the units of all components, summed: what their logs of deviations lack."""
        return self.unit.log().sum(-1)


def in_units(votes: Float[Tensor, "*where in_caps out_caps pose"]) -> InUnits:
    """Votes divided by the largest for the same parent and component; infinite ones become NaN."""
    largest = _largest(votes, -3)
    unit = torch.where(largest >= _LARGEST, largest, 1)
    return InUnits(votes / unit, unit.squeeze(-3))


def pose_unit(poses: Float[Tensor, "*where pose"]) -> Float[Tensor, "*where 1"]:
    """What to divide each pose by before its components are squared; it carries no gradient."""
    wide = torch.float64 if poses.dtype == torch.float64 else torch.float32  # half cannot hold the sum
    # the sum of magnitudes, for which a CPU takes a third of the time that it takes for the largest of them
    size = poses.detach().abs().sum(-1, keepdim=True, dtype=wide)
    return torch.where(size >= _LARGEST, size, 1).to(poses.dtype)


def room_for_products(
    votes: Float[Tensor, "*where in_caps out_caps pose"], poses: Float[Tensor, "*where out_caps pose"]
) -> Float[Tensor, "*where 1 1"]:
    """What to multiply poses by so that their products with votes stay finite: one, unless these overflow."""
    room = _LARGEST_PRODUCT / poses.shape[-1] / _largest(votes, -3, -2, -1).squeeze(-3).clamp(min=1)
    return (room / _largest(poses, -2, -1).clamp(min=1)).clamp(max=1)


def _largest(values: Tensor, *axes: int) -> Tensor:
    """The largest magnitude along the axes."""
    return values.detach().abs().amax(axes, keepdim=True)
