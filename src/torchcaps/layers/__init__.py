"""Capsule layers: each takes capsules and gives capsules, with its routing as a part."""

from torchcaps.core.squash import squash, squash_exponential

from .conv2d import ConvCaps2d
from .decoder import ConvDecoder, FcDecoder
from .fc import FcCaps, flatten_grid
from .geometry import ConvStage, map_sizes, pad_same, smallest_image
from .primary import PrimaryCaps
from .vote import cast_votes

__all__ = [
    "ConvCaps2d",
    "ConvDecoder",
    "ConvStage",
    "FcCaps",
    "FcDecoder",
    "PrimaryCaps",
    "cast_votes",
    "flatten_grid",
    "map_sizes",
    "pad_same",
    "smallest_image",
    "squash",
    "squash_exponential",
]
