"""What pruning leaves without effect: channels that are constant or unread, children that vote zero."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from torchcaps.layers import SelectedFcCaps
from torchcaps.models import ConvStep, Removable
from torchcaps.routing import DynamicRouting, SelfAttentionRouting


def slice_step(
    step: ConvStep, rows: Int[Tensor, " kept"], columns: Int[Tensor, " read"] | None
) -> dict[str, Tensor]:
    """State of the step with these output channels, reading these channels; None reads all."""
    weight = step.conv.weight[rows]
    state = {f"{step.name}.weight": weight if columns is None else weight[:, columns]}
    if step.conv.bias is not None:
        state[f"{step.name}.bias"] = step.conv.bias[rows]
    if step.norm:
        *_, norm = step.tail.children()
        vectors = {key: value for key, value in norm.state_dict().items() if value.ndim}
        state |= {f"{step.norm}.{key}": value[rows] for key, value in vectors.items()}
    return state


def constant_channels(step: ConvStep) -> tuple[Bool[Tensor, " channels"], Float[Tensor, " channels"]]:
    """Which channels of a step do not depend on the image, and the value of each channel if it does not."""
    is_constant = ~step.conv.weight.flatten(1).any(1)
    bias = step.conv.weight.new_zeros(len(is_constant)) if step.conv.bias is None else step.conv.bias
    # an instance norm wants more than one position, and an activation may work in place
    flat = bias.view(1, -1, 1, 1).repeat(1, 1, 2, 2)
    return is_constant, step.tail(flat)[0, :, 0, 0]


def fold_constants(step: ConvStep, reader: nn.Conv2d, *, is_padded: bool) -> None:
    """Let `reader` know the constant channels of `step` by its bias instead of its filters, in place.

    Zeros around a padded map are not the constant: there only channels that are zero can go.
    """
    if reader.groups > 1 or reader.bias is None:
        return
    is_constant, values = constant_channels(step)
    if is_padded:
        is_constant &= values == 0
    reader.bias += reader.weight[:, is_constant].sum((2, 3)) @ values[is_constant]
    reader.weight[:, is_constant] = 0.0


def used_channels(conv: nn.Conv2d, rows: Int[Tensor, " kept"]) -> Int[Tensor, " read"]:
    """Input channels that the filters of the given output channels read; a depthwise one reads its own."""
    if conv.groups > 1:
        return rows
    used = conv.weight[rows].flatten(2).any(2).any(0).nonzero()[:, 0]
    return used if len(used) else torch.zeros(1, dtype=torch.int64, device=rows.device)


def drops_children(parts: Removable) -> bool:
    """Whether a child that votes zero can go.

    In other routings such a vote still counts, and of children that share matrices none votes zero alone.
    """
    own_matrices = len(parts.parents.weight) == parts.parents.in_caps
    ignores_zeros = type(parts.parents.routing) in (DynamicRouting, SelfAttentionRouting)
    return parts.selects and own_matrices and ignores_zeros


def silent_coupling(parts: Removable) -> Float[Tensor, "in_caps out_caps"]:
    """The couplings of each child when it votes zero."""
    parents = parts.parents
    votes = parents.weight.new_zeros(1, parents.in_caps, *parents.weight.shape[2:])
    routed = parents.routing(votes, votes.new_zeros(votes.shape[:2]))
    assert routed.coupling is not None
    if not isinstance(parents, SelectedFcCaps):
        return routed.coupling[0]
    return parents.silent_coupling.index_copy(0, parents.voters, routed.coupling[0])
