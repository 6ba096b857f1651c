"""Networks as files for inference: written, checked and read back."""

from .card import CARD
from .read import Exported, is_exported, load_predictor, open_exported
from .write import SUFFIXES, export_run, inference_network

__all__ = [
    "CARD",
    "SUFFIXES",
    "Exported",
    "export_run",
    "inference_network",
    "is_exported",
    "load_predictor",
    "open_exported",
]
