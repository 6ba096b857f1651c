"""Descriptors of ground: what computes them, how they are trained, and how well they tell places apart."""

from .building_ratio import BuildingRatio, Segmenter, building_ratio, colour_segmenter, onnx_segmenter
from .describe import AbBrief, Describer, load_describer
from .evaluate import evaluate_descriptor
from .matching import Matching, Pairing, describe_places, load_matching, measure_matching
from .train import train_descriptor

__all__ = [
    "AbBrief",
    "BuildingRatio",
    "Describer",
    "Matching",
    "Pairing",
    "Segmenter",
    "building_ratio",
    "colour_segmenter",
    "describe_places",
    "evaluate_descriptor",
    "load_describer",
    "load_matching",
    "measure_matching",
    "onnx_segmenter",
    "train_descriptor",
]
