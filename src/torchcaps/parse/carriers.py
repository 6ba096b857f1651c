"""Which capsules of the deepest level carry what a network marks: lengths carved back through the levels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from torchcaps.core import Capsules, LayerTrace, UserError
from torchcaps.layers import ConvStage, LocalConvCaps2d, LocalDeconvCaps2d, receptive_field
from torchcaps.models import ShrinksAndGrows
from torchcaps.routing import SumsVotes

from .evenness import Evenness, measure_evenness
from .saliency import place_map

LocalCaps = LocalConvCaps2d | LocalDeconvCaps2d


class Carriers(NamedTuple):
    """Where the length of the marked class capsules comes from; all parts of an image add up to 1.

    Attributes:
        parts: Of the deepest level's capsules; negative where one pulls the other way.
        skipped: Came in through skip connections, above the deepest level.
        bias: Came from the biases of the layers above.
        evenness: Of the layers above that have more than one parent type, where the parts pass through.
    """

    parts: Float[Tensor, "batch rows columns types"]
    skipped: Float[Tensor, " batch"]
    bias: Float[Tensor, " batch"]
    evenness: tuple[Evenness, ...]

    @property
    def through_deepest(self) -> Float[Tensor, " batch"]:
        """The part of the length that the deepest level carries."""
        return self.parts.sum((1, 2, 3))

    @property
    def hardly_routes(self) -> bool:
        """Whether couplings are nearly even in all layers, so that weights alone decide the parts."""
        return all(each.hardly_routes for each in self.evenness)


def carriers_obstacle(network: nn.Module) -> str | None:
    """Why this network's marks cannot be carved back; None where they can."""
    if not isinstance(network, ShrinksAndGrows):
        return f"{type(network).__name__} has no levels of capsules"
    for layer in network.routed_levels().up:
        if not isinstance(layer.routing, SumsVotes):
            return f"{type(layer.routing).__name__} does not make parents sums of votes"
    return None


def carriers(
    network: nn.Module, layers: tuple[LayerTrace, ...], marked: Bool[Tensor, "batch height width"]
) -> Carriers:
    """What each capsule of the deepest level adds to the length of the class capsules at marked pixels.

    A parent before its squash is a sum of weighed votes; a child's part is its summand's component along that
    sum. A vote pools a window of children, and splits into what each of them adds. Parts are carved from the
    class capsules down, layer by layer, with the couplings as they are.

    Args:
        network: One of `ShrinksAndGrows`.
        layers: Of a forward pass with `return_routing=True`.
        marked: Pixels whose class capsules are looked at; every marked pixel counts the same.
    """
    reason = carriers_obstacle(network)
    if reason is not None:
        raise UserError(f"what carries a mark cannot be found here: {reason}")
    assert isinstance(network, ShrinksAndGrows)
    levels = network.routed_levels()
    if not layers or layers[-1].routed.coupling is None:
        raise UserError("the couplings were not kept: run the model with return_routing=True")
    if not bool(marked.any((1, 2)).all()):
        raise UserError("an image without a marked pixel has nothing to carry")
    shares = marked / marked.sum((1, 2), keepdim=True)
    classes = levels.up[-1].out_types
    parts = shares.unsqueeze(-1).expand(-1, -1, -1, classes) / classes
    skipped, bias = parts.new_zeros(len(parts)), parts.new_zeros(len(parts))
    evenness: list[Evenness] = []
    traces = layers[-len(levels.up) :]
    for number in reversed(range(len(levels.up))):
        layer, trace = levels.up[number], traces[number]
        evenness += _evenness_along(trace, parts)
        parts, from_bias = carve(layer, trace, parts)
        bias = bias + from_bias
        below = (levels.up[number - 1] if number else levels.down[-1]).out_types
        skipped, parts = skipped + parts[..., below:].sum((1, 2, 3)), parts[..., :below]
    return Carriers(parts, skipped, bias, tuple(reversed(evenness)))


def _evenness_along(trace: LayerTrace, parts: Tensor) -> list[Evenness]:
    """The evenness of the couplings at positions that something is carried through."""
    coupling = trace.routed.coupling
    if coupling is None or coupling.shape[-1] < 2:
        return []
    used = coupling[parts.abs().sum(-1) > 0]  # (positions, in_types, out_types)
    return [measure_evenness(used.flatten(0, 1).unsqueeze(0))]


def carve(
    layer: LocalCaps, trace: LayerTrace, parts: Float[Tensor, "batch rows columns out_types"]
) -> tuple[Float[Tensor, "batch _rows _columns in_types"], Float[Tensor, " batch"]]:
    """The parts of a layer's parents split over its children, and over its bias."""
    poses = trace.children.poses.detach().requires_grad_()
    coupling, routing = trace.routed.coupling, layer.routing
    assert coupling is not None
    assert isinstance(routing, SumsVotes)
    with torch.enable_grad():
        votes, pooled_activations = layer.cast(Capsules(poses, trace.children.activations.detach()))
        summands = routing.summands(votes, pooled_activations, coupling.detach())
        offset: Tensor | None = getattr(routing, "bias", None)
        constant = torch.zeros_like(summands[0, 0, 0, 0]) if offset is None else offset.detach()
        pooled = summands.detach().sum(3) + constant
        length = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
        length = length.clamp(min=torch.finfo(pooled.dtype).tiny)
        # weighs a component along it; divided twice, because the square of a small length would be zero
        along = pooled / length / length * parts.unsqueeze(-1)
        (slope,) = torch.autograd.grad((summands.sum(3) * along).sum(), poses)
    return (slope * poses).sum(-1).detach(), (along * constant).sum((1, 2, 3, 4))


def carriers_on_image(
    network: ShrinksAndGrows, parts: Float[Tensor, "batch rows columns types"], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """Positive parts, summed over types, each capsule at the centre of what it looks at."""
    levels = network.routed_levels()
    stages = [ConvStage("stem", levels.stem_kernel, 1, "same")]
    for layer in levels.down:
        stages.append(ConvStage("routed", layer.kernel_size, layer.stride, "same"))
    return place_map(parts.clamp(min=0).sum(-1), size, receptive_field(size, stages))
