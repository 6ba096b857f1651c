"""Channels of a convolution that are constant or unread."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from torchcaps.models import ConvStep


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
