"""Pretrained networks: listed, verified, loaded, packed, and shown photographs."""

from .digit import Prepared, prepare_digit
from .entry import WEIGHTS, Entry, entry_of_model, find_entry, list_weights, packaged_weights, preparation_of
from .evidence import Evidence, SeedMean
from .load import (
    PhotoPredictor,
    create_model,
    find_run,
    is_pretrained,
    load_pretrained,
    output_folder,
    photo_predictor,
    predict,
    read_photo,
)
from .pack import Packing, pack_run
from .rounding import Rounding
from .store import checksum_of, entry_folder, get_weights, is_here
from .table import render_weights
from .turns import ANGLES, better_turns

__all__ = [
    "ANGLES",
    "WEIGHTS",
    "Entry",
    "Evidence",
    "Packing",
    "PhotoPredictor",
    "Prepared",
    "Rounding",
    "SeedMean",
    "better_turns",
    "checksum_of",
    "create_model",
    "entry_folder",
    "entry_of_model",
    "find_entry",
    "find_run",
    "get_weights",
    "is_here",
    "is_pretrained",
    "list_weights",
    "load_pretrained",
    "output_folder",
    "pack_run",
    "packaged_weights",
    "photo_predictor",
    "predict",
    "preparation_of",
    "prepare_digit",
    "read_photo",
    "render_weights",
]
