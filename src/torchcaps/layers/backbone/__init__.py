"""Convolutional trunks: from an image to the feature map below the capsules."""

from .api import TRUNKS, Trunk, TrunkConvolution, create_trunk, list_trunks
from .mobilenet import MobileNetTrunk
from .resnet import ResNetTrunk

__all__ = [
    "TRUNKS",
    "MobileNetTrunk",
    "ResNetTrunk",
    "Trunk",
    "TrunkConvolution",
    "create_trunk",
    "list_trunks",
]
