"""What families share: the classes they extend, what pruning may ask of them, and the first convolutions."""

from .anatomy import ConvStep, Cut, KeptSizes, OnTrunk, Removable, RoutedLevels, Shrinkable, ShrinksAndGrows
from .change_classes import change_classes
from .classifier import CapsuleClassifier, DecoderName, PlainClassifier, build_decoder, route_in_turn
from .network import CapsuleGrid, MapReader, ModelConfig, Network
from .segmenter import Segmenter
from .stem import NormName, conv_stem, depthwise_primary, require_fitting_stem, stem_stages, stem_steps

__all__ = [
    "CapsuleClassifier",
    "CapsuleGrid",
    "ConvStep",
    "Cut",
    "DecoderName",
    "KeptSizes",
    "MapReader",
    "ModelConfig",
    "Network",
    "NormName",
    "OnTrunk",
    "PlainClassifier",
    "Removable",
    "RoutedLevels",
    "Segmenter",
    "Shrinkable",
    "ShrinksAndGrows",
    "build_decoder",
    "change_classes",
    "conv_stem",
    "depthwise_primary",
    "require_fitting_stem",
    "route_in_turn",
    "stem_stages",
    "stem_steps",
]
