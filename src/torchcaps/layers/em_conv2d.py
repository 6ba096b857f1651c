"""EM routing for convolutional capsules whose parents compete across positions (Hinton 2018, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchcaps.core import Routed
from torchcaps.routing import (
    EMCosts,
    EMRouting,
    EMSettings,
    FusedPath,
    Parts,
    RoutingShape,
    UncastVotes,
    fit_parents,
    keep_float32,
    require_sizes,
)

_SAMPLES_AT_ONCE = 8  # on a CPU; 128 at once take 9.9 GB (em_capsnet_small in train--h200.json)


def children_of_windows(
    windows: int, kernel_size: int, stride: int, device: torch.device
) -> Int[Tensor, "windows kernel"]:
    """The child that stands at each place of each window, along one axis."""
    starts = stride * torch.arange(windows, device=device)
    return starts.unsqueeze(1) + torch.arange(kernel_size, device=device)


def windows_of_children(
    windows: int, kernel_size: int, stride: int, device: torch.device
) -> tuple[Int[Tensor, "children reach"], Bool[Tensor, "children reach"]]:
    """The places, flat over (window, kernel), where each child of an axis stands, and which of them exist."""
    reach = -(-kernel_size // stride)
    children = torch.arange(stride * (windows - 1) + kernel_size, device=device).unsqueeze(1)
    window = children // stride - torch.arange(reach, device=device)
    place = children - stride * window
    exists = (window >= 0) & (window < windows) & (place < kernel_size)
    return torch.where(exists, window * kernel_size + place, 0), exists


def log_total_per_child(
    log_values: Float[Tensor, "batch rows columns types kernel kernel"], stride: int
) -> Float[Tensor, "batch rows columns types kernel kernel"]:
    """Log of the sum of a child's values over all windows it stands in, given back at each of its places."""
    batch, rows, columns, types, kernel, _ = log_values.shape
    device = log_values.device
    (row_places, row_exists), (column_places, column_exists) = (
        windows_of_children(windows, kernel, stride, device) for windows in (rows, columns)
    )
    places = log_values.permute(0, 3, 1, 4, 2, 5).reshape(batch, types, rows * kernel, columns * kernel)
    met = places[:, :, row_places[:, :, None, None], column_places]  # (batch, types, y, reach, x, reach)
    exists = row_exists[:, :, None, None] & column_exists
    met = met.masked_fill(~exists, torch.finfo(met.dtype).min)
    total = met.logsumexp(dim=(3, 5))
    row_children, column_children = (
        children_of_windows(windows, kernel, stride, device) for windows in (rows, columns)
    )
    spread = total[:, :, row_children[:, :, None, None], column_children]  # (batch, types, row, m, column, n)
    return spread.permute(0, 2, 4, 1, 3, 5)


@keep_float32
def positional_em_routing(
    votes: Float[Tensor, "batch rows columns in_caps out_types pose"],
    activations: Float[Tensor, "batch rows columns in_caps"],
    *,
    kernel_size: int,
    stride: int,
    costs: EMCosts,
    settings: EMSettings,
) -> Routed:
    """EM routing in which a child splits among the parents of all windows it stands in.

    Couplings of one window do not sum to one for a child that other windows see as well; over all windows
    they do. The start is an even split over the parents that a child can reach, fewer at the border than
    inside.

    Args:
        votes: Gathered by windows, the children of one in the order (type, row, column), without padding.
        activations: Of the children, gathered alike.
        kernel_size: Side of the window.
        stride: Step of the window.
        costs: The learned costs of each parent type.
        settings: Iterations, inverse temperature and smallest variance.
    """
    in_caps = votes.shape[3]
    places = (in_caps // kernel_size**2, kernel_size, kernel_size)

    def split(log_density: Tensor) -> Tensor:
        of_type = log_density.logsumexp(-1).reshape(*log_density.shape[:-2], *places)
        return (log_density - log_total_per_child(of_type, stride).flatten(-3).unsqueeze(-1)).exp()

    return fit_parents(
        votes,
        activations,
        coupling=split(votes.new_zeros(votes.shape[:-1])),
        split=split,
        even_mass=_even_mass(votes.shape[1:-1], kernel_size, stride),  # an export leaves the batch open
        costs=costs,
        settings=settings,
    )


def _even_mass(shape: Sequence[int], kernel_size: int, stride: int) -> float:
    """Children that a parent owns when each splits evenly over all parents of all windows."""
    rows, columns, in_caps, out_types = shape[-4:]
    reached = _reached(rows, kernel_size, stride) * _reached(columns, kernel_size, stride)
    return in_caps // kernel_size**2 * reached / (rows * columns * out_types)


def _reached(windows: int, kernel_size: int, stride: int) -> int:
    """Children along one axis that stand in at least one window."""
    return stride * (windows - 1) + kernel_size if stride <= kernel_size else windows * kernel_size


class PositionalEM(EMRouting):
    """`positional_em_routing` as the routing of a `ConvCaps2d` without padding.

    Args:
        shape: Children of one window, parent types and pose.
        kernel_size: Side of the layer's window.
        stride: Step of the layer's window.
        iterations: As in `em_routing`, like the settings that follow.
        inverse_temperature: Final lambda.
        min_variance: Added to each variance.
    """

    def __init__(
        self,
        shape: RoutingShape,
        *,
        kernel_size: int,
        stride: int,
        iterations: int = 3,
        inverse_temperature: float = 1.0,
        min_variance: float = 0.1,
    ) -> None:
        super().__init__(
            shape,
            iterations=iterations,
            inverse_temperature=inverse_temperature,
            min_variance=min_variance,
        )
        self.kernel_size, self.stride = kernel_size, stride

    def forward(
        self,
        votes: Float[Tensor, "batch rows columns in_caps out_types pose"],
        activations: Float[Tensor, "batch rows columns in_caps"],
    ) -> Routed:
        """Route `votes`."""
        require_sizes(self.activation_cost, votes.shape[-2:-1])
        return positional_em_routing(
            votes,
            activations,
            kernel_size=self.kernel_size,
            stride=self.stride,
            costs=EMCosts(self.activation_cost, self.vote_cost),
            settings=self.settings,
        )

    def even_mass(self, shape: Sequence[int]) -> float:
        """Children that a parent owns when each splits evenly over all parents of all windows."""
        return _even_mass(shape, self.kernel_size, self.stride)

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """A kernel for any device that gives no couplings."""
        return self._fuse_windows(votes, (self.kernel_size, self.stride), votes.where, insist)

    def batch_parts(self, votes: UncastVotes) -> Parts | None:
        """On a CPU that learns, a few samples at a time: the votes of a batch would take gigabytes."""
        is_learning = torch.is_grad_enabled() and votes.weight.requires_grad
        is_cpu = votes.poses.device.type == "cpu"
        return Parts(_SAMPLES_AT_ONCE, recompute=True) if is_cpu and is_learning else None
