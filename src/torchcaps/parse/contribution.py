"""Each child's part in the length of a class capsule, where votes add up to it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor, einsum, nn

from torchcaps.core import Capsules, LayerTrace, UserError
from torchcaps.layers import FcCaps, SelectedFcCaps, cast_votes, flatten_grid
from torchcaps.routing import SumsVotes

from .saliency import GridShape, check_chosen, check_grid

_VOTES_AT_ONCE = 1 << 22  # numbers: 16 MB, and a copy of them


class Contributions(NamedTuple):
    """How the length of a class capsule before its squash splits: parts and bias add up to it."""

    parts: Float[Tensor, "batch in_caps"]  # negative where a child pulls the other way
    bias: Float[Tensor, " batch"]

    @property
    def length(self) -> Float[Tensor, " batch"]:
        """The length of the class capsule before its squash."""
        return self.parts.sum(1) + self.bias

    @property
    def shares(self) -> Float[Tensor, "batch in_caps"]:
        """The parts, as shares of the length."""
        return self.parts / self.length.clamp(min=1e-12).unsqueeze(1)

    @property
    def in_favour(self) -> Float[Tensor, " batch"]:
        """The sum of the positive parts, as a share of the length; a bias takes the place of some of it."""
        return self.parts.clamp(min=0).sum(1) / self.length.clamp(min=1e-12)

    @property
    def against(self) -> Float[Tensor, " batch"]:
        """The sum of the negative parts, as a share of the length; it may exceed one."""
        return self.parts.clamp(max=0).sum(1).abs() / self.length.clamp(min=1e-12)


def contribution_obstacle(network: nn.Module) -> str | None:
    """Why the length of this network's class capsules does not split into parts; None where it does."""
    layers = _fully_connected(network)
    if not layers:
        return f"{type(network).__name__} has no fully connected capsules"
    routing = layers[-1].routing
    if not isinstance(routing, SumsVotes):
        kind = getattr(routing, "__name__", type(routing).__name__)
        inner = getattr(routing, "routing", None)  # such as EM routing below coordinate addition
        kind = kind if inner is None else f"{kind} over {type(inner).__name__}"
        return f"classes are routed by {kind}, which does not make them sums of votes"
    return None


def _fully_connected(network: nn.Module) -> list[FcCaps]:
    return [module for module in network.modules() if isinstance(module, FcCaps)]


@torch.no_grad()
def contributions(network: nn.Module, trace: LayerTrace, chosen: Int[Tensor, " batch"]) -> Contributions:
    """What each child adds to the length of the chosen class capsule, before that is squashed.

    The capsule is a sum s of weighed votes and a bias; the part of a child is its summand's component along
    s. Couplings are taken as the trace has them, quantized or not. Only votes for the chosen classes are
    cast, some images at a time.

    Args:
        network: Whose last fully connected layer the trace is of.
        trace: That layer in a forward pass with `return_routing=True`.
        chosen: The class to explain, usually the predicted one.
    """
    reason = contribution_obstacle(network)
    if reason is not None:
        raise UserError(f"the length of a class capsule cannot be split here: {reason}")
    layer = _fully_connected(network)[-1]
    children, coupling = _checked(layer, trace, chosen)
    voters = _voters(layer)
    heard = Capsules(*(field.to(layer.weight.dtype).index_select(1, voters) for field in children))
    parts, bias = heard.poses.new_zeros(heard.activations.shape), heard.poses.new_zeros(len(chosen))
    at_once = max(1, _VOTES_AT_ONCE // (len(voters) * layer.weight.shape[3] * layer.pose_rows))
    for parent in sorted(set(chosen.tolist())):
        for some in (chosen == parent).nonzero().squeeze(1).split(at_once):
            shares = coupling[some, :, parent].index_select(1, voters)
            part = Capsules(*(field[some] for field in heard))
            parts[some], bias[some] = _split_length(layer, part, shares.to(parts.dtype), parent)
    everyone = parts.new_zeros(children.activations.shape).index_copy(1, voters, parts)
    return Contributions(everyone, bias)


def _checked(layer: FcCaps, trace: LayerTrace, chosen: Tensor) -> tuple[Capsules, Tensor]:
    children, coupling = flatten_grid(trace.children), trace.routed.coupling
    if coupling is None:
        raise UserError("the trace kept no couplings: run the model with return_routing=True")
    in_caps = layer.grid_caps if isinstance(layer, SelectedFcCaps) else layer.in_caps
    expected = (len(chosen), in_caps, layer.weight.shape[2])
    if coupling.shape != expected or children.activations.shape != expected[:2]:
        raise UserError(
            f"{len(chosen)} chosen classes of this network need couplings of shape {expected}, got "
            f"{tuple(coupling.shape)}: pass the trace of its last layer, and a class for each image"
        )
    check_chosen(chosen, coupling.shape[2])
    return children, coupling


def _voters(layer: FcCaps) -> Tensor:
    if isinstance(layer, SelectedFcCaps):
        return layer.voters
    return torch.arange(layer.in_caps, device=layer.weight.device)


def _split_length(layer: FcCaps, children: Capsules, coupling: Tensor, parent: int) -> Contributions:
    """The parts of one class for a few images; couplings are those to this class."""
    routing = layer.routing
    assert isinstance(routing, SumsVotes)
    votes = cast_votes(children.poses, layer.weight[:, :, parent : parent + 1], layer.pose_rows)
    summands = routing.summands(votes, children.activations, coupling.unsqueeze(-1)).squeeze(-2)
    bias: Tensor | None = getattr(routing, "bias", None)
    offset = summands.new_zeros(summands.shape[-1]) if bias is None else bias[parent].to(summands.dtype)
    return Contributions(*split_along_sum(summands, offset))


def split_along_sum(
    summands: Float[Tensor, "batch parts pose"], offset: Float[Tensor, "*#batch pose"]
) -> tuple[Float[Tensor, "batch parts"], Float[Tensor, " batch"]]:
    """What each summand and the offset, which all of them are added to, are along the sum of all.

    These parts add up to the length of the sum.
    """
    pooled = summands.sum(1) + offset
    length = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
    direction = pooled / length.clamp(min=torch.finfo(length.dtype).tiny)
    return einsum("bid,bd->bi", summands, direction), (direction * offset).sum(-1)


def contribution_map(
    parts: Float[Tensor, "batch in_caps"], grid: GridShape
) -> Float[Tensor, "batch height width"]:
    """The positive parts at each position, summed over types.

    Args:
        parts: Of the children, ordered (height, width, type).
        grid: Height, width and types of the children.
    """
    check_grid(grid, parts.shape[1])
    height, width, types = grid
    return reduce(parts.clamp(min=0), "b (h w t) -> b h w", "sum", h=height, w=width, t=types)
