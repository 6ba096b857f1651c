"""Networks as files for inference: written, checked and read back."""

from .card import CARD, Card, read_card
from .read import Exported, is_exported, load_predictor, open_exported
from .write import SUFFIXES, export_run, inference_network

__all__ = [
    "CARD",
    "SUFFIXES",
    "Card",
    "Exported",
    "export_run",
    "inference_network",
    "is_exported",
    "load_predictor",
    "open_exported",
    "read_card",
]
