"""Pretrained networks: listed, verified, loaded, packed, and shown photographs."""

from .digit import Prepared, prepare_digit
from .entry import Entry, entry_of_model, find_entry, list_weights, preparation_of
from .evidence import Evidence, SeedMean
from .load import PhotoPredictor, create_model, is_pretrained, load_pretrained, photo_predictor, predict
from .pack import Packing, pack_run
from .rounding import Rounding
from .store import entry_folder, get_weights

__all__ = [
    "Entry",
    "Evidence",
    "Packing",
    "PhotoPredictor",
    "Prepared",
    "Rounding",
    "SeedMean",
    "create_model",
    "entry_folder",
    "entry_of_model",
    "find_entry",
    "get_weights",
    "is_pretrained",
    "list_weights",
    "load_pretrained",
    "pack_run",
    "photo_predictor",
    "predict",
    "preparation_of",
    "prepare_digit",
]
