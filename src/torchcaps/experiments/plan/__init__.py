"""What an experiment is: its settings, its runs, and the claims that its rows decide."""

from .claim import MISSING, Check, Claim, Finding, RowsOf, Verdict, on_rows, our_claim
from .compare import larger, larger_metric, with_spread
from .evidence import (
    THESIS_SEEDS,
    Case,
    Effect,
    Mean,
    case_of_rows,
    decide,
    decide_best,
    decide_each,
    decide_together,
    difference,
    excess,
    gain,
    mean_of,
)
from .experiment import (
    BEYOND,
    EXPERIMENTS,
    FIRST_SEED,
    Experiment,
    PlannedRun,
    on_mnist5k,
    register,
    slug_of,
)
from .identity import made_with, planned_with
from .job import Job, Perform
from .outcome import Outcome
from .reuse import make_reused, setting_of, take_over
from .setting import SMOKE, Changes, Setting, Values, join_changes

__all__ = [
    "BEYOND",
    "EXPERIMENTS",
    "FIRST_SEED",
    "MISSING",
    "SMOKE",
    "THESIS_SEEDS",
    "Case",
    "Changes",
    "Check",
    "Claim",
    "Effect",
    "Experiment",
    "Finding",
    "Job",
    "Mean",
    "Outcome",
    "Perform",
    "PlannedRun",
    "RowsOf",
    "Setting",
    "Values",
    "Verdict",
    "case_of_rows",
    "decide",
    "decide_best",
    "decide_each",
    "decide_together",
    "difference",
    "excess",
    "gain",
    "join_changes",
    "larger",
    "larger_metric",
    "made_with",
    "make_reused",
    "mean_of",
    "on_mnist5k",
    "on_rows",
    "our_claim",
    "planned_with",
    "register",
    "setting_of",
    "slug_of",
    "take_over",
    "with_spread",
]
