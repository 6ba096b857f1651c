"""Networks without capsules, with which capsule networks are compared."""

from .conv_baseline import ConvBaseline, ConvBaselineConfig
from .conv_twin import ConvTwin, ConvTwinConfig
from .strided_convnet import StridedConvNet, StridedConvNetConfig
from .trunk_classifier import TrunkClassifier, TrunkClassifierConfig
from .unet import UNet, UNetConfig
from .vit import ViT, ViTConfig

__all__ = [
    "ConvBaseline",
    "ConvBaselineConfig",
    "ConvTwin",
    "ConvTwinConfig",
    "StridedConvNet",
    "StridedConvNetConfig",
    "TrunkClassifier",
    "TrunkClassifierConfig",
    "UNet",
    "UNetConfig",
    "ViT",
    "ViTConfig",
]
