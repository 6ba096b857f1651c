"""Capsule networks and the networks they are compared with, one file for each family.

Importing a family registers its variants. `list_models` gives their names and `create_model` builds one of
them. `register_variants` adds a family of your own, which extends `CapsuleClassifier` or `Segmenter`.
"""

from .api import (
    MODELS,
    Variant,
    build_model,
    config_as_json,
    create_model,
    list_models,
    register_variants,
)
from .backbone_capsnet import BackboneCapsNet, BackboneCapsNetConfig, capsule_head
from .baselines.conv_baseline import ConvBaseline, ConvBaselineConfig
from .baselines.conv_twin import ConvTwin, ConvTwinConfig
from .baselines.strided_convnet import StridedConvNet, StridedConvNetConfig
from .baselines.trunk_classifier import TrunkClassifier, TrunkClassifierConfig
from .baselines.unet import UNet, UNetConfig
from .baselines.vit import ViT, ViTConfig
from .deepcaps import DeepCaps, DeepCapsConfig
from .descriptors import DescriptorConfig, DescriptorNetwork
from .dr_capsnet import DRCapsNet, DRCapsNetConfig
from .effconv_capsnet import EffConvCapsNet, EffConvCapsNetConfig
from .efficient_capsnet import EfficientCapsNet, EfficientCapsNetConfig
from .em_capsnet import EMCapsNet, EMCapsNetConfig
from .em_posenet import EMPoseNet, EMPoseNetConfig
from .gamma_capsnet import GammaCapsNet, GammaCapsNetConfig
from .network import (
    CapsuleClassifier,
    CapsuleGrid,
    ConvStep,
    Cut,
    KeptSizes,
    MapReader,
    ModelConfig,
    Network,
    OnTrunk,
    PlainClassifier,
    Removable,
    RoutedLevels,
    Segmenter,
    Shrinkable,
    ShrinksAndGrows,
    build_decoder,
    change_classes,
)
from .parse_capsnet import ParseCapsNet, ParseCapsNetConfig
from .pose_networks import PoseConvNet, PoseConvNetConfig, PoseMLP, PoseMLPConfig, PoseNetwork, PoseRegressor
from .segcaps import SegCaps, SegCapsConfig

__all__ = [
    "MODELS",
    "BackboneCapsNet",
    "BackboneCapsNetConfig",
    "CapsuleClassifier",
    "CapsuleGrid",
    "ConvBaseline",
    "ConvBaselineConfig",
    "ConvStep",
    "ConvTwin",
    "ConvTwinConfig",
    "Cut",
    "DRCapsNet",
    "DRCapsNetConfig",
    "DeepCaps",
    "DeepCapsConfig",
    "DescriptorConfig",
    "DescriptorNetwork",
    "EMCapsNet",
    "EMCapsNetConfig",
    "EMPoseNet",
    "EMPoseNetConfig",
    "EffConvCapsNet",
    "EffConvCapsNetConfig",
    "EfficientCapsNet",
    "EfficientCapsNetConfig",
    "GammaCapsNet",
    "GammaCapsNetConfig",
    "KeptSizes",
    "MapReader",
    "ModelConfig",
    "Network",
    "OnTrunk",
    "ParseCapsNet",
    "ParseCapsNetConfig",
    "PlainClassifier",
    "PoseConvNet",
    "PoseConvNetConfig",
    "PoseMLP",
    "PoseMLPConfig",
    "PoseNetwork",
    "PoseRegressor",
    "Removable",
    "RoutedLevels",
    "SegCaps",
    "SegCapsConfig",
    "Segmenter",
    "Shrinkable",
    "ShrinksAndGrows",
    "StridedConvNet",
    "StridedConvNetConfig",
    "TrunkClassifier",
    "TrunkClassifierConfig",
    "UNet",
    "UNetConfig",
    "Variant",
    "ViT",
    "ViTConfig",
    "build_decoder",
    "build_model",
    "capsule_head",
    "change_classes",
    "config_as_json",
    "create_model",
    "list_models",
    "register_variants",
]
