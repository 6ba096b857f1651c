"""Which channels of a trunk stay, and the network without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from torchcaps.core import UserError, sketching
from torchcaps.layers.backbone import Trunk
from torchcaps.models import Cut, OnTrunk
from torchcaps.routing import iterations_of, set_iterations

from .trunk_cost import prunable_trunk

NetworkT = TypeVar("NetworkT", bound=nn.Module)
Kept = list[Int64[Tensor, " _"]]  # of each group, in ascending order


def group_norms(trunk: Trunk) -> list[Float[Tensor, " _"]]:
    """L1 norm of every filter of each group, taken from the group's first convolution, as EagleEye does."""
    leaders: dict[int, str] = {}
    for convolution in trunk.convolutions():
        if not convolution.is_depthwise:
            leaders.setdefault(convolution.group, convolution.name)
    filters = [trunk.get_submodule(leaders[group]).weight for group in sorted(leaders)]
    return [weight.detach().abs().sum((1, 2, 3)) for weight in filters]  # type: ignore[operator]


def strongest_channels(trunk: Trunk, widths: Sequence[int]) -> Kept:
    """The `widths[group]` channels of each group whose filters have the largest L1 norms."""
    return [
        norms.topk(width).indices.sort().values.cpu()
        for norms, width in zip(group_norms(trunk), widths, strict=True)
    ]


def random_channels(trunk: Trunk, widths: Sequence[int], random: torch.Generator) -> Kept:
    """The `widths[group]` channels of each group, chosen blindly."""
    chosen = [
        torch.randperm(whole, generator=random)[:width]
        for whole, width in zip(trunk.widths, widths, strict=True)
    ]
    return [channels.sort().values for channels in chosen]


def remove_channels(model: NetworkT, kept: Kept) -> NetworkT:
    """A copy of the model without the channels that are not kept, on the same device.

    What becomes of the head is declared by the family, in its method `head_cuts`.
    """
    if not isinstance(model, OnTrunk):
        raise UserError(f"only networks on a trunk are pruned by channels, not {type(model).__name__}")
    cuts = {
        f"trunk.{name}": cut
        for name, cut in _trunk_cuts(prunable_trunk(model.get_submodule("trunk")), kept).items()
    }
    cuts |= model.head_cuts(kept[-1])
    state = {name: _cut(values, cuts.get(name, ())) for name, values in model.state_dict().items()}
    config = replace(model.config, trunk_widths=tuple(len(channels) for channels in kept))
    with sketching():
        pruned: NetworkT = type(model)(config)
    for name, values in pruned.state_dict().items():
        if values.shape != state[name].shape:
            raise UserError(f"{name} cannot follow the channels that are removed: its routing has no rule")
    pruned.load_state_dict(state, assign=True)
    set_iterations(pruned, iterations_of(model))
    return pruned.train(model.training)


def _cut(values: Tensor, cut: Cut) -> Tensor:
    for axis, indices in enumerate(cut):
        if indices is not None:
            values = values.index_select(axis, indices.to(values.device))
    return values.clone()


def _trunk_cuts(trunk: Trunk, kept: Kept) -> dict[str, Cut]:
    cuts: dict[str, Cut] = {}
    for convolution in trunk.convolutions():
        written = kept[convolution.group]
        source = None if convolution.is_depthwise else convolution.source
        cuts[f"{convolution.name}.weight"] = (written, None if source is None else kept[source])
        for part in ("weight", "bias", "running_mean", "running_var"):
            cuts[f"{convolution.norm}.{part}"] = (written,)
    return cuts
