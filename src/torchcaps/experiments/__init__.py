"""The tables and figures of the thesis, chapter by chapter."""

from . import annealing, backbones, rem, smoke
from .catalogue import LABELS, find_experiment, list_experiments
from .plan import EXPERIMENTS, Experiment
from .results import gather_runs
from .runner import (
    Visit,
    merge_runs,
    older_runs,
    pack_runs,
    run_in_processes,
    run_missing,
    run_on_cluster,
    set_aside,
)

__all__ = [
    "EXPERIMENTS",
    "LABELS",
    "Experiment",
    "Visit",
    "annealing",
    "backbones",
    "find_experiment",
    "gather_runs",
    "list_experiments",
    "merge_runs",
    "older_runs",
    "pack_runs",
    "rem",
    "run_in_processes",
    "run_missing",
    "run_on_cluster",
    "set_aside",
    "smoke",
]
