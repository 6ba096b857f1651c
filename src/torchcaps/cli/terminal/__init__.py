"""What all commands share: options, printed answers, signs of life, and help."""

from .answers import ImageFiles, found_images
from .examples import FIRST_STEPS, as_epilog, epilog
from .options import (
    Changes,
    DataDir,
    Device,
    Images,
    Json,
    LevelsOption,
    MeasuresFile,
    NewRun,
    Precision,
    Quiet,
    RecipeName,
    Resume,
    RunFolder,
    choose_device,
    choose_machine,
    faster_precision,
    found_run,
    is_first_process,
    levels_for,
    named_data,
    read_levels,
    writable,
)
from .progress import CountBar, ProgressBar, working
from .quick_help import help_of
from .show import print_json, print_table
from .unknown_option import RecipeCommand

__all__ = [
    "FIRST_STEPS",
    "Changes",
    "CountBar",
    "DataDir",
    "Device",
    "ImageFiles",
    "Images",
    "Json",
    "LevelsOption",
    "MeasuresFile",
    "NewRun",
    "Precision",
    "ProgressBar",
    "Quiet",
    "RecipeCommand",
    "RecipeName",
    "Resume",
    "RunFolder",
    "as_epilog",
    "choose_device",
    "choose_machine",
    "epilog",
    "faster_precision",
    "found_images",
    "found_run",
    "help_of",
    "is_first_process",
    "levels_for",
    "named_data",
    "print_json",
    "print_table",
    "read_levels",
    "working",
    "writable",
]
