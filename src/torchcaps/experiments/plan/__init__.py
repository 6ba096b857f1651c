"""What an experiment is: its settings, its runs, and the claims that its rows decide."""

from .claim import Check, Claim, Finding, RowsOf, Verdict
from .compare import MISSING, larger, larger_metric, mean_of, ours, rows_named, with_spread
from .evidence import Effect, Mean, as_ours, decide, decide_together, difference, excess
from .experiment import (
    EXPERIMENTS,
    FIRST_SEED,
    Experiment,
    Perform,
    PlannedRun,
    register,
    slug_of,
    train_recipe,
)
from .outcome import Outcome, leave_result
from .setting import Changes, Setting, Values, join_changes

__all__ = [
    "EXPERIMENTS",
    "FIRST_SEED",
    "MISSING",
    "Changes",
    "Check",
    "Claim",
    "Effect",
    "Experiment",
    "Finding",
    "Mean",
    "Outcome",
    "Perform",
    "PlannedRun",
    "RowsOf",
    "Setting",
    "Values",
    "Verdict",
    "as_ours",
    "decide",
    "decide_together",
    "difference",
    "excess",
    "join_changes",
    "larger",
    "larger_metric",
    "leave_result",
    "mean_of",
    "ours",
    "register",
    "rows_named",
    "slug_of",
    "train_recipe",
    "with_spread",
]
