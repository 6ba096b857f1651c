"""What pruning cuts as a whole: a weight, a capsule, or a capsule type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import UserError
from torchcaps.layers import ConvCaps2d, FcCaps, PrimaryCaps, SelectedFcCaps

from .lobster import Lobster, prunable_layers, prunable_weights


class Units(NamedTuple):
    """Weights that can be cut, and how large the unit is that each belongs to."""

    weights: Sequence[Tensor]
    norms: Sequence[Tensor]  # one for each weight tensor, of a shape that broadcasts over it
    each: Float[Tensor, " units"]  # the norm of each unit once


@torch.no_grad()
def measure_units(network: nn.Module, settings: Lobster) -> Units:
    """The units of a network and their norms, among which one threshold is searched.

    - "weight": one weight, by its absolute value.
    - "capsule": one child of a fully connected capsule layer, by the root mean square of the matrices through
      which it votes for all parents. Children that share matrices are one unit.
    - "type": one primary capsule type, by the root mean square of the matrices of its children at all
      positions and of the filters that make it. Biases are not counted and not cut.

    Norms are means rather than sums, so that units of layers of different sizes can be compared.
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
    primary, parents = _types_and_parents(network, settings)
    filters, matrices = primary.conv.weight, parents.weight
    types = torch.arange(primary.types, device=matrices.device)
    children = torch.arange(parents.in_caps, device=matrices.device)
    if isinstance(parents, SelectedFcCaps):
        children = parents.voters
    of_filters, of_matrices = types.repeat_interleave(len(filters) // len(types)), children % len(types)
    belongs = types.unsqueeze(1) == torch.cat([of_filters, of_matrices])
    squares = torch.cat([weight.square().sum((1, 2, 3)) for weight in (filters, matrices)])
    sizes = torch.cat([weight.new_full((len(weight),), weight[0].numel()) for weight in (filters, matrices)])
    # a table, not index_add: on a GPU that sums in any order, and all processes must cut the same types
    each = ((belongs * squares).sum(1) / (belongs * sizes).sum(1)).sqrt()
    norms = [each[kind].view(-1, 1, 1, 1) for kind in (of_filters, of_matrices)]
    return Units([filters, matrices], norms, each)


def _types_and_parents(network: nn.Module, settings: Lobster) -> tuple[PrimaryCaps, FcCaps]:
    """The primary capsules and the layer that hears them; an error where types cannot be cut as a whole."""
    learning = {layer for _, layer in prunable_layers(network, settings.layers)}
    primary = getattr(network, "primary", None)
    # the first capsule layer of all, pruned or not, is the one above the primary capsules
    parents = next((layer for layer in network.modules() if isinstance(layer, FcCaps | ConvCaps2d)), None)
    if not (
        isinstance(primary, PrimaryCaps)
        and isinstance(parents, FcCaps)
        and {primary.conv, parents} <= learning
    ):
        raise UserError(
            "pruning.group=type needs primary capsules that feed a fully connected capsule layer, and a "
            f"pattern for both; {type(network).__name__} has none named {settings.layers!r}; "
            "widen pruning.layers, or set pruning.group=weight"
        )
    if len(parents.weight) != parents.in_caps:
        raise UserError(
            "pruning.group=type needs matrices of their own for all primary capsules; those of this "
            f"{type(network).__name__} share theirs; set pruning.group=weight"
        )
    return primary, parents
