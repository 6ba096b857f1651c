"""Which channels of a trunk stay, and the network without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from einops import reduce
from jaxtyping import Float, Int64
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.models import BackboneCapsNet, TrunkClassifier

from .iterations import copy_iterations

Kept = list[Int64[Tensor, " _"]]  # of each group, in ascending order
_Cut = tuple[Tensor | None, ...]  # the indices to keep along each axis; None keeps all


def group_norms(trunk: nn.Module) -> list[Float[Tensor, " _"]]:
    """L1 norm of every filter of each group, taken from the group's first convolution, as EagleEye does."""
    layout: Any = trunk.convolutions
    leaders: dict[int, str] = {}
    for convolution in layout():
        if not convolution.is_depthwise:
            leaders.setdefault(convolution.group, convolution.name)
    filters = [trunk.get_submodule(leaders[group]).weight for group in sorted(leaders)]
    return [weight.detach().abs().sum((1, 2, 3)) for weight in filters]  # type: ignore[operator]


def strongest_channels(trunk: nn.Module, widths: Sequence[int]) -> Kept:
    """The `widths[group]` channels of each group whose filters have the largest L1 norms."""
    return [_largest(norms, width) for norms, width in zip(group_norms(trunk), widths, strict=True)]


def random_channels(trunk: nn.Module, widths: Sequence[int], random: torch.Generator) -> Kept:
    """The `widths[group]` channels of each group, chosen blindly."""
    full: Any = trunk.widths
    chosen = [
        torch.randperm(whole, generator=random)[:width] for whole, width in zip(full, widths, strict=True)
    ]
    return [channels.sort().values for channels in chosen]


def _largest(values: Tensor, count: int) -> Tensor:
    return values.topk(count).indices.sort().values.cpu()


def remove_channels(model: nn.Module, kept: Kept) -> nn.Module:
    """A copy of the model without the channels that are not kept, on the same device.

    A capsule head keeps floor(channels / pose) primary capsules, those with the largest filters; a primary
    capsule that is left out casts no vote, so dynamic routing gives what it gives for a pose of zero.
    """
    if not isinstance(model, BackboneCapsNet | TrunkClassifier):
        raise UserError(f"only networks on a trunk are pruned by channels, not a {type(model).__name__}")
    cuts = {f"trunk.{name}": cut for name, cut in _trunk_cuts(model.trunk, kept).items()}
    cuts |= _capsule_cuts(model, kept[-1]) if isinstance(model, BackboneCapsNet) else _linear_cuts(kept[-1])
    state = {name: _cut(values, cuts.get(name, ())) for name, values in model.state_dict().items()}
    config: Any = replace(model.config, trunk_widths=tuple(len(channels) for channels in kept))
    with torch.device("meta"):
        pruned = type(model)(config)
    for name, values in pruned.state_dict().items():
        if values.shape != state[name].shape:
            raise UserError(f"{name} cannot follow the channels that are removed: its routing has no rule")
    pruned.load_state_dict(state, assign=True)
    copy_iterations(model, pruned)
    return pruned.train(model.training)


def _cut(values: Tensor, cut: _Cut) -> Tensor:
    for axis, indices in enumerate(cut):
        if indices is not None:
            values = values.index_select(axis, indices.to(values.device))
    return values.clone()


def _trunk_cuts(trunk: nn.Module, kept: Kept) -> dict[str, _Cut]:
    layout: Any = trunk.convolutions
    cuts: dict[str, _Cut] = {}
    for convolution in layout():
        written = kept[convolution.group]
        reads_all = convolution.is_depthwise or convolution.source is None
        cuts[f"{convolution.name}.weight"] = (written, None if reads_all else kept[convolution.source])
        for part in ("weight", "bias", "running_mean", "running_var"):
            cuts[f"{convolution.norm}.{part}"] = (written,)
    return cuts


def _linear_cuts(channels: Tensor) -> dict[str, _Cut]:
    return {"classifier.weight": (None, channels)}


def _capsule_cuts(model: BackboneCapsNet, channels: Tensor) -> dict[str, _Cut]:
    pose = model.config.primary_pose
    norms = reduce(model.primary.conv.weight.detach().abs(), "(t d) c h w -> t", "sum", d=pose)
    capsules = _largest(norms, len(channels) // pose)
    rows = (capsules.unsqueeze(1) * pose + torch.arange(pose)).flatten()
    has_own_matrices = len(model.classes.weight) == model.classes.in_caps
    return {
        "depthwise.weight": (channels,),
        "depthwise.bias": (channels,),
        "primary.conv.weight": (rows, channels),
        "primary.conv.bias": (rows,),
        **({"classes.weight": (capsules,)} if has_own_matrices else {}),
    }
