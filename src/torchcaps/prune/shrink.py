"""Removal of capsules and channels that pruning has made zero; the output stays the same."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from torchcaps.core import UserError
from torchcaps.inspection import count_flops, count_parameters
from torchcaps.layers import SelectedFcCaps
from torchcaps.models import MODELS, KeptSizes, Removable, Shrinkable
from torchcaps.routing import iterations_of, set_iterations

from .dead_parts import drops_children, fold_constants, silent_coupling, slice_step, used_channels

NetworkT = TypeVar("NetworkT", bound=nn.Module)


class NetworkSize(NamedTuple):
    """What a network costs: `bytes` of parameters and buffers, `flops` of one image."""

    parameters: int
    flops: int
    bytes: int


def measure_size(network: nn.Module) -> NetworkSize:
    """Parameters, operations for one image, and bytes."""
    tensors = [*network.parameters(), *network.buffers()]
    return NetworkSize(
        count_parameters(network),
        count_flops(network)["total"],
        sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    )


@torch.no_grad()
def shrink(network: NetworkT) -> NetworkT:
    """The network without the capsules and channels that pruning has cut off.

    A capsule that votes zero for every class goes, and a primary type with its filters when none of its
    capsules is left. A channel whose filter is zero is constant: it goes into the bias of the layer that
    reads it. Channels that no filter reads go too. Outputs and the couplings of what is left are those of the
    pruned network in evaluation mode; its batch statistics would differ in training.

    The result is a network of the same class, whose config says its sizes: a state dict and the config are
    enough to build it again. What may go is declared by each family in its method `removable`.
    """
    _require_shrinkable(network)
    source = deepcopy(network).eval()
    assert isinstance(source, Shrinkable)
    parts = source.removable()
    readers = [*(step.conv for step in parts.steps[1:]), parts.reader.conv]
    for step, reader in zip(parts.steps, readers, strict=True):
        is_last = reader is parts.reader.conv
        fold_constants(step, reader, is_padded=is_last and parts.is_padded)
    plan = _Plan.of(parts)
    smaller = type(network)(source.resized(plan.sizes))
    set_iterations(smaller, iterations_of(source))
    weight = parts.parents.weight
    state = source.state_dict() | plan.slice(parts)
    smaller.to(weight.device, weight.dtype).load_state_dict({key: state[key] for key in smaller.state_dict()})
    return smaller.train(network.training)


def _require_shrinkable(network: nn.Module) -> None:
    if isinstance(network, Shrinkable):
        return
    variants = [MODELS[name] for name in MODELS.names()]
    families = sorted({variant.family for variant in variants if hasattr(variant.build, "removable")})
    raise UserError(
        f"{type(network).__name__} cannot be shrunk: its family does not declare what may be removed; "
        f"{', '.join(families)} do"
    )


class _Plan(NamedTuple):
    """Indices of what stays."""

    channels: list[Tensor]  # outputs of each step
    rows: Tensor  # outputs of the reader
    types: Tensor
    voters: Tensor  # among the children that the parents hear
    places: Tensor  # of the voters, among the children of the kept types
    children: Tensor  # of the kept types, among all children

    @classmethod
    def of(cls, parts: Removable) -> _Plan:
        parents = parts.parents
        device = parents.weight.device
        if isinstance(parents, SelectedFcCaps):
            all_children, where = parents.grid_caps, parents.voters
        else:
            all_children, where = parents.in_caps, torch.arange(parents.in_caps, device=device)
        voters = torch.arange(parents.in_caps, device=device)
        if drops_children(parts):
            voters = voters[parents.weight.flatten(1).any(1)]
            voters = voters if len(voters) else where.new_zeros(1)  # a layer has a child
        of_type = torch.arange(all_children, device=device) % parts.types
        types = torch.unique(of_type[where[voters]])
        children = torch.isin(of_type, types).nonzero()[:, 0]
        pose = len(parts.reader.conv.weight) // parts.types
        rows = (types.unsqueeze(1) * pose + torch.arange(pose, device=device)).flatten()
        channels: list[Tensor] = []
        above = rows
        for step in [parts.reader, *reversed(parts.steps[1:])]:
            above = used_channels(step.conv, above)
            channels.insert(0, above)
        return cls(channels, rows, types, voters, torch.searchsorted(children, where[voters]), children)

    @property
    def is_selection(self) -> bool:
        return len(self.places) < len(self.children)

    @property
    def sizes(self) -> KeptSizes:
        """How much is left."""
        widths = tuple(len(channels) for channels in self.channels)
        return KeptSizes(widths, len(self.types), len(self.places) if self.is_selection else 0)

    def slice(self, parts: Removable) -> dict[str, Tensor]:
        """The tensors of the smaller network that differ."""
        state: dict[str, Tensor] = {}
        below: Tensor | None = None
        for step, kept in zip(parts.steps, self.channels, strict=True):
            state |= slice_step(step, kept, below)
            below = kept
        is_depthwise = parts.reader.conv.groups > 1
        state |= slice_step(parts.reader, self.rows, None if is_depthwise else below)
        parents, name = parts.parents, parts.parents_name
        if drops_children(parts):  # matrices and priors are then those of one child each
            state[f"{name}.weight"] = parents.weight[self.voters]
            prior = getattr(parents.routing, "prior", None)
            if prior is not None:
                state[f"{name}.routing.prior"] = prior[self.voters]
        if self.is_selection:
            state[f"{name}.voters"] = self.places
            state[f"{name}.silent_coupling"] = silent_coupling(parts)[self.children]
        return state
