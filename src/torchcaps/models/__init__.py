"""Capsule architectures: one file per family; importing it registers its variants."""

from .api import MODELS, config_as_json, create_model, describe_model, list_models, register_variants
from .backbone_capsnet import BackboneCapsNet, BackboneCapsNetConfig, capsule_head
from .classifier import CapsuleClassifier
from .conv_baseline import ConvBaseline, ConvBaselineConfig
from .deepcaps import DeepCaps, DeepCapsConfig
from .dr_capsnet import DRCapsNet, DRCapsNetConfig
from .effconv_capsnet import EffConvCapsNet, EffConvCapsNetConfig
from .efficient_capsnet import EfficientCapsNet, EfficientCapsNetConfig
from .em_capsnet import EMCapsNet, EMCapsNetConfig
from .flops import count_flops
from .gamma_capsnet import GammaCapsNet, GammaCapsNetConfig
from .parse_capsnet import ParseCapsNet, ParseCapsNetConfig
from .segcaps import SegCaps, SegCapsConfig
from .trunk_classifier import TrunkClassifier, TrunkClassifierConfig
from .unet import UNet, UNetConfig

__all__ = [
    "MODELS",
    "BackboneCapsNet",
    "BackboneCapsNetConfig",
    "CapsuleClassifier",
    "ConvBaseline",
    "ConvBaselineConfig",
    "DRCapsNet",
    "DRCapsNetConfig",
    "DeepCaps",
    "DeepCapsConfig",
    "EMCapsNet",
    "EMCapsNetConfig",
    "EffConvCapsNet",
    "EffConvCapsNetConfig",
    "EfficientCapsNet",
    "EfficientCapsNetConfig",
    "GammaCapsNet",
    "GammaCapsNetConfig",
    "ParseCapsNet",
    "ParseCapsNetConfig",
    "SegCaps",
    "SegCapsConfig",
    "TrunkClassifier",
    "TrunkClassifierConfig",
    "UNet",
    "UNetConfig",
    "capsule_head",
    "config_as_json",
    "count_flops",
    "create_model",
    "describe_model",
    "list_models",
    "register_variants",
]
