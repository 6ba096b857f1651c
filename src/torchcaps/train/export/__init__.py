"""Networks as files for inference: written, checked and read back."""

from .read import Exported, is_exported, load_predictor, open_exported
from .write import SUFFIXES, export_run

__all__ = [
    "SUFFIXES",
    "Exported",
    "export_run",
    "is_exported",
    "load_predictor",
    "open_exported",
]
