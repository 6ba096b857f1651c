"""A run as a folder: what stands in it, who may write to it, and how it is loaded."""

from .data_card import DataCard, card_of
from .folder import (
    check_folder,
    check_outside_classes,
    held_alone,
    is_finished,
    removed_if_refused,
    require_no_run,
)
from .health import health_inputs, inspect_run
from .provenance import RunPart, device_name, provenance
from .result import TRAINED, PruneResult, TrainResult, Whereabouts, read_result
from .run import Run, evaluate_run, load_labelled, load_run, load_split, read_data_card
from .write import write_recipe, write_untrained, write_weights

__all__ = [
    "TRAINED",
    "DataCard",
    "PruneResult",
    "Run",
    "RunPart",
    "TrainResult",
    "Whereabouts",
    "card_of",
    "check_folder",
    "check_outside_classes",
    "device_name",
    "evaluate_run",
    "health_inputs",
    "held_alone",
    "inspect_run",
    "is_finished",
    "load_labelled",
    "load_run",
    "load_split",
    "provenance",
    "read_data_card",
    "read_result",
    "removed_if_refused",
    "require_no_run",
    "write_recipe",
    "write_untrained",
    "write_weights",
]
