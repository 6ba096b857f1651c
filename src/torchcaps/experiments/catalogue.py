"""Every table and figure of the thesis that reports a result, and how far each is reproduced."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchcaps.core import UserError
from torchcaps.data import has_files

from .annealing import CHAPTER as _ANNEALING
from .backbones import CHAPTER as _BACKBONES
from .lung import CHAPTER as _LUNG
from .plan import EXPERIMENTS, Experiment
from .pose import CHAPTER as _POSE
from .records import BUDGETS, Budget, Rows, by_setting, load_rows
from .rem import CHAPTER as _REM
from .runner import RunCounts, count_runs
from .uav import CHAPTER as _UAV

State = Literal["reproduced", "partly", "not started", "data missing"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a table or figure is reproduced.

    Attributes:
        needs: Datasets and time; or why there are no runs.
        full: Runs of the full budget, here or behind the gathered rows.
        planned: How many of them there are to be.
        quick: Runs of the quick budget, likewise.
        thesis: The test accuracies that the thesis prints, None for those it does not.
        ours: Our test accuracies of the same settings.
    """

    label: str
    chapter: str
    needs: str
    state: State
    full: int = 0
    planned: int = 0
    quick: int = 0
    thesis: list[float | None] | None = None
    ours: list[float] | None = None


LABELS = {
    "fig:annealing": _ANNEALING,
    "fig:fix_vs_ann": _ANNEALING,
    "fig:fashion": _ANNEALING,
    "fig:cifar10": _ANNEALING,
    "fig:flops_vs_acc": _BACKBONES,
    "tab:performance-dynamiccaps": _BACKBONES,
    "fig:quantization levels": _REM,
    "fig:cij_nopruning_all": _REM,
    "tab:acc_nopruning_epochs": _REM,
    "fig:acc_vs_pp": _REM,
    "fig:capsnetq_vscapsnetrem": _REM,
    "fig:mnist-dictionary-test": _REM,
    "fig:reconstruction": _REM,
    "tab:decoder-acc-supp": _REM,
    "tab:decoder-ent-supp": _REM,
    "tab:mnist-pruned-params": _REM,
    "tab:results-otherdatasets": _REM,
    "tab:results-affnist": _REM,
    "tab:novelviewpoints": _REM,
    "tab:novelviewpoints_full_original": _REM,
    "fig:saliency_maps": _REM,
    "fig:saliency_maps_sn_az": _REM,
    "fig:saliency_maps_sn_el": _REM,
    "fig:parse_trees_cifar10_samples": _REM,
    "tab:lsl-time_to_convergence_and_error": _UAV,
    "fig:lsl-errorplots": _UAV,
    "fig:quaternions_visualdiff": _POSE,
    "tab:quaternions_tinyshapenetresults": _POSE,
    "fig:quaternions_tinyshapenetresults": _POSE,
    "tab:lung-results": _LUNG,
}

_SMALLNORB = "the files of smallNORB cannot be downloaded here"
WITHOUT_RUNS = {  # why labels that are not built have no runs
    "tab:novelviewpoints_full_original": f"tab:novelviewpoints has its figures, and {_SMALLNORB}",
    "fig:saliency_maps_sn_az": _SMALLNORB,
    "fig:saliency_maps_sn_el": _SMALLNORB,
    "fig:quaternions_tinyshapenetresults": "tab:quaternions_tinyshapenetresults draws it, on other meshes",
}
WITHOUT_DATA = {"tab:novelviewpoints": _SMALLNORB}  # why labels that are built have none


def list_experiments(out: Path, results: Path, data_dir: Path | None = None) -> list[Progress]:
    """Every table and figure: those of the thesis in its order, built or not, then our own."""
    return [
        _describe(EXPERIMENTS[label], out, results, data_dir)
        if label in EXPERIMENTS
        else _without_runs(label)
        for label in _ordered_labels()
    ]


def built_experiments() -> list[Experiment]:
    """Every experiment that has runs or may have them: those of the thesis in its order, then our own."""
    return [EXPERIMENTS[label] for label in _ordered_labels() if label in EXPERIMENTS]


def _ordered_labels() -> list[str]:
    return list(dict.fromkeys((*LABELS, *EXPERIMENTS)))


def find_experiment(label: str) -> Experiment:
    """The experiment of that label; one that is listed but not built is an error that says why."""
    if label in WITHOUT_RUNS:
        reason = WITHOUT_RUNS[label]
        raise UserError(f"{label} has no runs: {reason}; `torchcaps reproduce --list` names those that have")
    return EXPERIMENTS[label]


def _without_runs(label: str) -> Progress:
    return Progress(label=label, chapter=LABELS[label], needs=WITHOUT_RUNS[label], state="data missing")


def _describe(experiment: Experiment, out: Path, results: Path, data_dir: Path | None) -> Progress:
    runs = {
        budget: count_runs((run for run in experiment.planned(budget) if run.budget == budget), out)
        for budget in BUDGETS
    }
    has_results = (results / f"{experiment.slug}.json").is_file()
    rows = load_rows(results, experiment.slug) if has_results else []
    accuracies = by_setting(rows, "test_accuracy").values()
    needs = (", ".join(experiment.data), f"{experiment.gpu_minutes} GPU minutes")
    return Progress(
        label=experiment.label,
        chapter=experiment.chapter,
        needs="; ".join(filter(None, needs)),
        state=_state(experiment, rows, runs, data_dir),
        full=max(runs["full"].done, _gathered(rows, "full")),
        planned=runs["full"].planned,
        quick=max(runs["quick"].done, _gathered(rows, "quick")),
        thesis=[row.thesis for row in accuracies] or None,
        ours=[row.ours for row in accuracies] or None,
    )


def _gathered(rows: Rows, budget: Budget) -> int:
    """Runs that stand behind the rows of a budget; their folders may be on another machine."""
    return len({(row.setting, run.facts.seed) for row in rows if row.budget == budget for run in row.runs})


def _state(experiment: Experiment, rows: Rows, runs: dict[Budget, RunCounts], data_dir: Path | None) -> State:
    is_whole = {row.setting for row in rows} >= {setting.name for setting in experiment.settings}
    if is_whole and all(row.seeds >= experiment.seeds and row.budget == "full" for row in rows):
        return "reproduced"
    if rows or runs["full"].done or runs["quick"].done:
        return "partly"
    has_data = all(has_files(name, data_dir) for name in experiment.data)
    return "not started" if has_data else "data missing"
