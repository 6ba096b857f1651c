"""Capsule layers: each takes capsules and gives capsules, with its routing as a part."""

from torchcaps.core import squash, squash_exponential

from .batch_norm import BatchNorm2d
from .conv2d import ConvCaps2d
from .conv3d_routing import Conv3dRoutingCaps, MapRouting, map_routing
from .coordinates import CoordinateAddition
from .decoder import ConvDecoder, FcDecoder
from .em_conv2d import PositionalEM, positional_em_routing
from .fc import FcCaps, flatten_grid
from .geometry import (
    ConvStage,
    Padding,
    ReceptiveField,
    StagePadding,
    map_sizes,
    pad_same,
    receptive_field,
    size_setting,
    smallest_image,
    too_small,
)
from .local_conv2d import LocalConvCaps2d, LocalDeconvCaps2d
from .primary import PrimaryCaps
from .product_conv2d import StemConv2d, rectify
from .quaternion import HamiltonMatrices, use_quaternion_votes
from .routed import Backend, RoutedCaps, layers_with_backend
from .selected_fc import SelectedFcCaps, build_fc_caps
from .vote import cast_votes

__all__ = [
    "Backend",
    "BatchNorm2d",
    "Conv3dRoutingCaps",
    "ConvCaps2d",
    "ConvDecoder",
    "ConvStage",
    "CoordinateAddition",
    "FcCaps",
    "FcDecoder",
    "HamiltonMatrices",
    "LocalConvCaps2d",
    "LocalDeconvCaps2d",
    "MapRouting",
    "Padding",
    "PositionalEM",
    "PrimaryCaps",
    "ReceptiveField",
    "RoutedCaps",
    "SelectedFcCaps",
    "StagePadding",
    "StemConv2d",
    "build_fc_caps",
    "cast_votes",
    "flatten_grid",
    "layers_with_backend",
    "map_routing",
    "map_sizes",
    "pad_same",
    "positional_em_routing",
    "receptive_field",
    "rectify",
    "size_setting",
    "smallest_image",
    "squash",
    "squash_exponential",
    "too_small",
    "use_quaternion_votes",
]
