"""Zeros become a smaller network: what nobody reads is left out, and the output stays the same."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchcaps.layers import SelectedFcCaps
from torchcaps.models.flops import count_flops

from .anatomy import Anatomy, anatomy_of
from .dead_channels import fold_constants, used_channels
from .iterations import copy_iterations


class Size(NamedTuple):
    """What a network costs: `bytes` of parameters and buffers, `flops` of one image."""

    parameters: int
    flops: int
    bytes: int


def measure_size(network: nn.Module) -> Size:
    """Parameters, operations for one image, and bytes."""
    tensors = [*network.parameters(), *network.buffers()]
    return Size(
        sum(parameter.numel() for parameter in network.parameters()),
        count_flops(network)["total"],
        sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    )


@torch.no_grad()
def shrink(network: nn.Module) -> nn.Module:
    """The network without the capsules and channels that pruning has cut off.

    A capsule that votes zero for every class goes, and a primary type with its filters when none of its
    capsules is left. A channel whose filter is zero is constant: it goes into the bias of the layer that
    reads it. Channels that no filter reads go too. Outputs and the couplings of what is left are those of the
    pruned network in evaluation mode; its batch statistics would differ in training.

    The result is a network of the same class, whose config says its sizes: a state dict and the config are
    enough to build it again. How far each family can be shrunk is in `anatomy_of`.
    """
    source: Any = deepcopy(network).eval()
    anatomy = anatomy_of(source)
    readers = [*(step.conv for step in anatomy.steps[1:]), anatomy.reader.conv]
    for step, reader in zip(anatomy.steps, readers, strict=True):
        is_last = reader is anatomy.reader.conv
        fold_constants(step, reader, is_padded=is_last and anatomy.is_padded)
    plan = _Plan.of(anatomy)
    smaller: nn.Module = type(source)(replace(source.config, **plan.config(source.config)))
    copy_iterations(source, smaller)
    weight = anatomy.parents.weight
    state = source.state_dict() | plan.slice(anatomy)
    smaller.to(weight.device, weight.dtype).load_state_dict({key: state[key] for key in smaller.state_dict()})
    return smaller.train(network.training)


class _Plan(NamedTuple):
    """Indices of what stays."""

    channels: list[Tensor]  # outputs of each step
    rows: Tensor  # outputs of the reader
    types: Tensor
    voters: Tensor  # among the children that the parents hear
    places: Tensor  # of the voters, among the children of the kept types
    children: Tensor  # of the kept types, among all children

    @classmethod
    def of(cls, anatomy: Anatomy) -> _Plan:
        parents = anatomy.parents
        is_selected = isinstance(parents, SelectedFcCaps)
        device, all_children = parents.weight.device, parents.grid_caps if is_selected else parents.in_caps
        where = parents.voters if is_selected else torch.arange(all_children, device=device)
        voters = torch.arange(parents.in_caps, device=device)
        if anatomy.drops_children:
            voters = voters[parents.weight.flatten(1).any(1)]
            voters = voters if len(voters) else where.new_zeros(1)  # a layer has a child
        of_type = torch.arange(all_children, device=device) % anatomy.types
        types = torch.unique(of_type[where[voters]])
        children = torch.isin(of_type, types).nonzero()[:, 0]
        pose = len(anatomy.reader.conv.weight) // anatomy.types
        rows = (types.unsqueeze(1) * pose + torch.arange(pose, device=device)).flatten()
        channels: list[Tensor] = []
        above = rows
        for step in [anatomy.reader, *reversed(anatomy.steps[1:])]:
            above = used_channels(step.conv, above)
            channels.insert(0, above)
        return cls(channels, rows, types, voters, torch.searchsorted(children, where[voters]), children)

    @property
    def is_selection(self) -> bool:
        return len(self.places) < len(self.children)

    def config(self, config: Any) -> dict[str, Any]:
        """The fields of the config that change."""
        widths = tuple(len(channels) for channels in self.channels)
        fields: dict[str, Any] = {"voters": len(self.places) if self.is_selection else 0}
        fields |= {"channels": widths, "stem_channels": widths[0], "primary_types": len(self.types)}
        return {key: value for key, value in fields.items() if hasattr(config, key)}

    def slice(self, anatomy: Anatomy) -> dict[str, Tensor]:
        """The tensors of the smaller network that differ."""
        state: dict[str, Tensor] = {}
        below: Tensor | None = None
        for step, kept in zip(anatomy.steps, self.channels, strict=True):
            state |= step.sliced(kept, below)
            below = kept
        is_depthwise = anatomy.reader.conv.groups > 1
        state |= anatomy.reader.sliced(self.rows, None if is_depthwise else below)
        parents, name = anatomy.parents, anatomy.parents_name
        if anatomy.drops_children:  # matrices and priors are then those of one child each
            state[f"{name}.weight"] = parents.weight[self.voters]
            prior = getattr(parents.routing, "prior", None)
            if prior is not None:
                state[f"{name}.routing.prior"] = prior[self.voters]
        if self.is_selection:
            state[f"{name}.voters"] = self.places
            state[f"{name}.silent_coupling"] = anatomy.silent_coupling()[self.children]
        return state
