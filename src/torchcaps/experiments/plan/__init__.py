"""What an experiment is: its settings, its runs, and the claims that its rows decide."""

from .experiment import (
    BUDGETS,
    EXPERIMENTS,
    Claim,
    Experiment,
    Finding,
    PlannedRun,
    Rows,
    RowsOf,
    Setting,
    Verdict,
    leave_result,
    protocol_of,
    register,
    train_recipe,
)

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "Finding",
    "PlannedRun",
    "Rows",
    "RowsOf",
    "Setting",
    "Verdict",
    "leave_result",
    "protocol_of",
    "register",
    "train_recipe",
]
