"""Convolutional trunks: from an image to the feature map that capsules stand on."""

from .api import TRUNKS, TrunkConvolution, create_trunk, list_trunks
from .mobilenet import MobileNetTrunk
from .resnet import ResNetTrunk

__all__ = ["TRUNKS", "MobileNetTrunk", "ResNetTrunk", "TrunkConvolution", "create_trunk", "list_trunks"]
