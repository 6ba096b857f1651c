"""Pretrained networks: listed, verified, loaded, packed, and shown photographs."""

from .answers import PhotoPredictor, hint_for, photo_predictor, predict, read_photo
from .entry import WEIGHTS, Entry, entry_of_model, find_entry, list_weights, packaged_weights, preparation_of
from .evaluate import evaluate_run, load_photos
from .load import (
    create_model,
    find_run,
    given_name,
    is_pretrained,
    load_pretrained,
    output_folder,
    sibling_folder,
)
from .measured import ANGLES, Evidence, Rounding, SeedMean
from .packing.pack import Packing, pack_run
from .photo import NoDigitError, Prepared, better_turns, prepare_digit
from .store import entry_folder, get_weights, is_here
from .table import render_photographs, render_weights

__all__ = [
    "ANGLES",
    "WEIGHTS",
    "Entry",
    "Evidence",
    "NoDigitError",
    "Packing",
    "PhotoPredictor",
    "Prepared",
    "Rounding",
    "SeedMean",
    "better_turns",
    "create_model",
    "entry_folder",
    "entry_of_model",
    "evaluate_run",
    "find_entry",
    "find_run",
    "get_weights",
    "given_name",
    "hint_for",
    "is_here",
    "is_pretrained",
    "list_weights",
    "load_photos",
    "load_pretrained",
    "output_folder",
    "pack_run",
    "packaged_weights",
    "photo_predictor",
    "predict",
    "preparation_of",
    "prepare_digit",
    "read_photo",
    "render_photographs",
    "render_weights",
    "sibling_folder",
]
