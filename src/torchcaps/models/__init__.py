"""Capsule architectures: one file per family; importing it registers its variants."""

from .api import MODELS, config_as_json, create_model, describe_model, list_models, register_variants
from .classifier import CapsuleClassifier
from .dr_capsnet import DRCapsNet, DRCapsNetConfig
from .efficient_capsnet import EfficientCapsNet, EfficientCapsNetConfig

__all__ = [
    "MODELS",
    "CapsuleClassifier",
    "DRCapsNet",
    "DRCapsNetConfig",
    "EfficientCapsNet",
    "EfficientCapsNetConfig",
    "config_as_json",
    "create_model",
    "describe_model",
    "list_models",
    "register_variants",
]
