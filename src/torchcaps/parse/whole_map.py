"""What each place of a map adds to a capsule that reads all of it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, einsum

from torchcaps.core import evaluating
from torchcaps.layers import PrimaryCaps, map_sizes, receptive_field
from torchcaps.models import MapReader, Network

from .contribution import split_along_sum
from .places import CapsuleMap


class MapParts(NamedTuple):
    """How the length of capsules before their squash splits: places of the map and bias add up to it."""

    parts: Float[Tensor, "batch capsules rows columns"]  # negative where a place pulls the other way
    bias: Float[Tensor, "batch capsules"]

    @property
    def length(self) -> Float[Tensor, "batch capsules"]:
        """The lengths of the capsules before their squash."""
        return self.parts.sum((2, 3)) + self.bias

    @property
    def shares(self) -> Float[Tensor, "batch capsules rows columns"]:
        """The positive parts of each capsule, which add up to one; zero where it has none."""
        positive = self.parts.clamp(min=0)
        return positive / positive.sum((2, 3), keepdim=True).clamp(min=1e-12)


def places_of_map(network: Network, reader: MapReader) -> CapsuleMap:
    """The places of the map that a capsule reads, and what each sees of the image."""
    size = network.config.image_size
    kernel, sides = reader.primary.conv.kernel_size, map_sizes(size, reader.stages)[-1]
    rows, columns = (min(pair) for pair in zip(kernel, sides, strict=True))
    return CapsuleMap((rows, columns, 1), receptive_field(size, reader.stages))


def split_over_map(
    network: Network, reader: MapReader, images: Float[Tensor, "batch channels height width"]
) -> MapParts:
    """What the places of the map add to each capsule on these images.

    A capsule is a convolution at one position: a sum s over the places of the map, and a bias. The part of a
    place is its summand's component along s, as `contributions` has it for the children of a class.
    """
    with torch.no_grad(), evaluating(network):
        return _split(reader.primary, reader.stem(images))


def _split(primary: PrimaryCaps, features: Float[Tensor, "batch channels height width"]) -> MapParts:
    conv = primary.conv
    rows, columns = conv.kernel_size
    seen = rearrange(features[..., :rows, :columns], "b (g c) h w -> b g c h w", g=conv.groups)
    kernels = rearrange(conv.weight.to(features.dtype), "(g o) c h w -> g o c h w", g=conv.groups)
    channels = einsum("bgchw,gochw->bgohw", seen, kernels).flatten(1, 2)
    summands = rearrange(channels, "b (t d) h w -> (b t) (h w) d", t=primary.types)
    bias = channels.new_zeros(channels.shape[1]) if conv.bias is None else conv.bias.to(channels.dtype)
    offset = bias.view(primary.types, -1).repeat(len(channels), 1)
    parts, of_bias = split_along_sum(summands, offset)
    shape = (len(channels), primary.types)
    return MapParts(parts.view(*shape, *channels.shape[2:]), of_bias.view(shape))
