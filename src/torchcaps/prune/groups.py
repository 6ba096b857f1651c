"""What pruning cuts as a whole: a weight, a capsule, or a capsule type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.layers import FcCaps, PrimaryCaps

from .lobster import Lobster, prunable_layers, prunable_weights


class Units(NamedTuple):
    """Weights that can be cut, and how large the unit is that each belongs to."""

    weights: Sequence[Tensor]
    norms: Sequence[Tensor]  # one for each weight tensor, of a shape that broadcasts over it
    each: Float[Tensor, " units"]  # the norm of each unit once


@torch.no_grad()
def measure_units(network: nn.Module, settings: Lobster) -> Units:
    """The units of a network and their norms, for which one threshold is searched.

    - "weight": one weight, by its absolute value.
    - "capsule": one child of a fully connected capsule layer, by the root mean square of the matrices through
      which it votes for all parents. Children that share matrices are one unit.
    - "type": one primary capsule type, by the root mean square of the matrices of its children at all
      positions and of the filters that make it. Biases are not counted and not cut.

    A mean, not a sum: units of layers of different sizes then compare.
    """
    if settings.group == "weight":
        weights = prunable_weights(network, settings.layers)
        norms: list[Tensor] = [weight.abs() for weight in weights]
        return Units(weights, norms, torch.cat([norm.flatten() for norm in norms]))
    if settings.group == "capsule":
        return _capsule_units(network, settings)
    return _type_units(network, settings)


def _capsule_units(network: nn.Module, settings: Lobster) -> Units:
    layers = [layer for _, layer in prunable_layers(network, settings.layers) if isinstance(layer, FcCaps)]
    if not layers:
        raise UserError(
            f"pruning.group=capsule needs a fully connected capsule layer; none is named {settings.layers!r}"
        )
    norms = [layer.weight.square().mean((1, 2, 3), keepdim=True).sqrt() for layer in layers]
    return Units([layer.weight for layer in layers], norms, torch.cat([norm.flatten() for norm in norms]))


def _type_units(network: nn.Module, settings: Lobster) -> Units:
    learning = [layer for _, layer in prunable_layers(network, settings.layers)]
    primary = getattr(network, "primary", None)
    parents = next((layer for layer in learning if isinstance(layer, FcCaps)), None)
    if not isinstance(primary, PrimaryCaps) or primary.conv not in learning or parents is None:
        raise UserError(
            "pruning.group=type needs primary capsules that feed a fully connected capsule layer, and a "
            f"pattern for both; {type(network).__name__} has none named {settings.layers!r}"
        )
    filters, matrices = primary.conv.weight, parents.weight
    made = rearrange(filters, "(t d) c h w -> t (d c h w)", t=primary.types)
    votes = rearrange(matrices, "(n t) p o d -> t (n p o d)", t=primary.types)
    squares = made.square().sum(1) + votes.square().sum(1)
    each = (squares / (made.shape[1] + votes.shape[1])).sqrt()
    of_filters = each.repeat_interleave(len(filters) // primary.types)
    of_matrices = each.repeat(len(matrices) // primary.types)
    shape = (-1, 1, 1, 1)
    return Units([filters, matrices], [of_filters.view(shape), of_matrices.view(shape)], each)
