"""The tables and figures of the thesis, chapter by chapter, and experiments that go beyond it."""

from . import (
    annealing,
    backbones,
    distance_gradient,
    equal_size,
    lung,
    modern,
    photographs,
    pose,
    rem,
    robustness,
    shrunk,
    smoke,
    uav,
)
from .catalogue import LABELS, Progress, find_experiment, list_experiments
from .demonstration import describe_demo, record_demo
from .plan import EXPERIMENTS, Experiment
from .records import Budget, read_budget
from .results import gather_runs
from .runner import (
    RunCounts,
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
    "RunCounts",
    "Visit",
    "annealing",
    "backbones",
    "describe_demo",
    "distance_gradient",
    "equal_size",
    "find_experiment",
    "gather_runs",
    "list_experiments",
    "lung",
    "merge_runs",
    "modern",
    "outdated_runs",
    "pack_runs",
    "photographs",
    "pose",
    "read_budget",
    "record_demo",
    "rem",
    "robustness",
    "run_in_processes",
    "run_missing",
    "run_on_cluster",
    "set_aside",
    "shrunk",
    "smoke",
    "uav",
]
