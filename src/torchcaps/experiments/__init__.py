"""The tables and figures of the thesis, chapter by chapter."""

from . import annealing, backbones, rem, robustness, smoke
from .catalogue import LABELS, Progress, find_experiment, list_experiments
from .plan import EXPERIMENTS, Experiment
from .records import Budget, read_budget
from .results import gather_runs
from .runner import (
    Visit,
    merge_runs,
    outdated_runs,
    pack_runs,
    run_in_processes,
    run_missing,
    run_on_cluster,
    set_aside,
)

__all__ = [
    "EXPERIMENTS",
    "LABELS",
    "Budget",
    "Experiment",
    "Progress",
    "Visit",
    "annealing",
    "backbones",
    "find_experiment",
    "gather_runs",
    "list_experiments",
    "merge_runs",
    "outdated_runs",
    "pack_runs",
    "read_budget",
    "rem",
    "robustness",
    "run_in_processes",
    "run_missing",
    "run_on_cluster",
    "set_aside",
    "smoke",
]
