"""Zeros become a smaller network: what nobody reads is left out, and the output stays the same."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.layers import FcCaps, SelectedFcCaps
from torchcaps.models import DRCapsNet, EfficientCapsNet
from torchcaps.models.flops import count_flops
from torchcaps.routing import DynamicRouting, SelfAttentionRouting

from .dead_channels import ConvStep, fold_constants, used_channels


class Size(NamedTuple):
    """What a network costs: `bytes` of parameters and buffers, `flops` of one image."""

    parameters: int
    flops: int
    bytes: int


@torch.no_grad()
def shrink(network: nn.Module) -> nn.Module:
    """The network without the capsules and channels that pruning has cut off.

    A primary capsule that votes zero for every parent goes; a type goes with its filters when none of its
    capsules is left. A channel whose filter is zero is constant: it goes into the bias of the layer that
    reads it. Channels that no filter reads go too. Outputs and the couplings of what is left are those of the
    pruned network in evaluation mode; its batch statistics would differ in training.

    The result is a network of the same class, whose config says its sizes: a state dict and the config are
    enough to build it again. DR-CapsNet and Efficient-CapsNet can be shrunk: in scaled-distance and EM
    routing a vote of zero still counts, and the padded, added maps of DeepCaps have no constant channels.
    """
    if not isinstance(network, DRCapsNet | EfficientCapsNet):
        raise UserError(f"DR-CapsNet and Efficient-CapsNet can be shrunk, not {type(network).__name__}")
    _check_routing(network.classes)
    source = deepcopy(network).eval()
    steps = _conv_steps(source)
    for step, above in zip(steps, [*steps[1:], None], strict=True):
        reader = source.primary.conv if above is None else above.conv
        fold_constants(step, reader, is_padded=above is None and source.primary.padding == "same")
    plan = _Plan.of(source, steps)
    smaller = type(network)(_config(source, plan))
    weight = network.classes.weight
    smaller.to(weight.device, weight.dtype).load_state_dict(plan.slice(source, steps))
    return smaller.train(network.training)


def measure_size(network: nn.Module) -> Size:
    """Parameters, operations for one image, and bytes."""
    tensors = [*network.parameters(), *network.buffers()]
    return Size(
        sum(parameter.numel() for parameter in network.parameters()),
        count_flops(network)["total"],
        sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    )


def _check_routing(classes: FcCaps) -> None:
    routing: Any = classes.routing
    if not isinstance(routing, DynamicRouting | SelfAttentionRouting):
        raise UserError(
            f"under {type(routing).__name__} a vote of zero still counts: only networks with dynamic or "
            "self-attention routing can be shrunk"
        )


def _conv_steps(network: DRCapsNet | EfficientCapsNet) -> list[ConvStep]:
    if isinstance(network, DRCapsNet):
        return [ConvStep("stem", network.stem, nn.ReLU())]
    return [
        ConvStep(f"stem.{number}.0", block[0], block[1:], norm=f"stem.{number}.2")  # type: ignore[index]
        for number, block in enumerate(network.stem)
    ]


class _Plan(NamedTuple):
    """Indices of what stays."""

    channels: list[Tensor]  # outputs of each convolution below the primary capsules
    types: Tensor
    voters: Tensor  # rows of the class layer's matrices
    places: Tensor  # of the voters, among the children of the kept types
    children: Tensor  # of the kept types, among all children

    @classmethod
    def of(cls, network: DRCapsNet | EfficientCapsNet, steps: list[ConvStep]) -> _Plan:
        classes, primary = network.classes, network.primary
        where = classes.voters if isinstance(classes, SelectedFcCaps) else torch.arange(classes.in_caps)
        where = where.to(classes.weight.device)
        voters = _kept(classes.weight.flatten(1).any(1))
        grid_caps = classes.grid_caps if isinstance(classes, SelectedFcCaps) else classes.in_caps
        of_type = torch.arange(grid_caps, device=where.device) % primary.types
        types = torch.unique(of_type[where[voters]])
        children = torch.isin(of_type, types).nonzero()[:, 0]
        places = torch.searchsorted(children, where[voters])
        channels: list[Tensor] = []
        rows = _channels_of(types, len(primary.conv.weight) // primary.types)
        for step in [ConvStep("primary.conv", primary.conv, nn.Identity()), *reversed(steps[1:])]:
            rows = used_channels(step.conv, rows)
            channels.insert(0, rows)
        return cls(channels, types, voters, places, children)

    def slice(self, network: DRCapsNet | EfficientCapsNet, steps: list[ConvStep]) -> dict[str, Tensor]:
        """The state of the smaller network."""
        state = dict(network.state_dict())
        primary, classes = network.primary, network.classes
        below: Tensor | None = None
        for step, kept in zip(steps, self.channels, strict=True):
            state.update(step.sliced(kept, below))
            below = kept
        rows = _channels_of(self.types, len(primary.conv.weight) // primary.types)
        columns = None if primary.conv.groups > 1 else below
        state.update(ConvStep("primary.conv", primary.conv, nn.Identity()).sliced(rows, columns))
        state["classes.weight"] = classes.weight[self.voters]
        if "classes.routing.prior" in state:
            state["classes.routing.prior"] = state["classes.routing.prior"][self.voters]
        return state | self._selection(classes, state)

    def _selection(self, classes: FcCaps, state: dict[str, Tensor]) -> dict[str, Tensor]:
        for key in ("classes.voters", "classes.silent_coupling"):
            state.pop(key, None)
        if len(self.places) == len(self.children):
            return {}
        silent = _silent_coupling(classes)[self.children]
        return {"classes.voters": self.places, "classes.silent_coupling": silent}


def _config(network: DRCapsNet | EfficientCapsNet, plan: _Plan) -> Any:
    voters = 0 if len(plan.places) == len(plan.children) else len(plan.places)
    widths = [len(channels) for channels in plan.channels]
    if isinstance(network, EfficientCapsNet):
        return replace(network.config, channels=tuple(widths), voters=voters)
    return replace(network.config, stem_channels=widths[0], primary_types=len(plan.types), voters=voters)


def _silent_coupling(classes: FcCaps) -> Tensor:
    """What the couplings of each child are when it votes zero."""
    votes = classes.weight.new_zeros(1, len(classes.weight), *classes.weight.shape[2:])
    routed = classes.routing(votes, votes.new_zeros(votes.shape[:2]))
    assert routed.coupling is not None
    if not isinstance(classes, SelectedFcCaps):
        return routed.coupling[0]
    return classes.silent_coupling.index_copy(0, classes.voters, routed.coupling[0])


def _channels_of(types: Tensor, pose: int) -> Tensor:
    return (types.unsqueeze(1) * pose + torch.arange(pose, device=types.device)).flatten()


def _kept(used: Tensor) -> Tensor:
    """The places that are true; the first where none is, since no layer can be empty."""
    return used.nonzero()[:, 0] if used.any() else torch.zeros(1, dtype=torch.int64, device=used.device)
