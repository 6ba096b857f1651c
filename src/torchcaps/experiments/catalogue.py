"""Every table and figure of the thesis that reports a result, and how far each is reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.data import has_files
from torchcaps.storage import read_json

from . import annealing
from .plan import BUDGETS, EXPERIMENTS, Experiment
from .runner import count_runs

_ANNEALING = annealing.runs.CHAPTER
_REM = "Capsule Networks Do Not Need to Model Everything"
_BACKBONES = "Towards Efficient Capsule Networks"
_UAV = "LSVL: Large-scale season-invariant visual localization for UAVs"
_POSE = "Encoding rotation representations as quaternions"
_LUNG = "Lung Nodules Segmentation with Capsule networks"

_NOT_BUILT = {"needs": "", "state": "not built", "done": 0, "planned": 0, "thesis": None, "ours": None}

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


def list_experiments(out: Path, results: Path, data_dir: Path | None = None) -> list[dict[str, Any]]:
    """One row for each table and figure: chapter, needs, state, runs done and planned, thesis and ours.

    Those of the thesis come in its order, whether they are built or not; then our own.
    """
    built = EXPERIMENTS.names()
    return [
        _describe(EXPERIMENTS[label], out, results, data_dir)
        if label in built
        else {"label": label, "chapter": LABELS[label], **_NOT_BUILT}
        for label in dict.fromkeys((*LABELS, *built))
    ]


def find_experiment(label: str) -> Experiment:
    """The experiment of that label; one that is listed but not built yet is an error that says so."""
    if label in LABELS and label not in EXPERIMENTS.names():
        raise UserError(f"{label} is not built yet; `torchcaps reproduce --list` names those that are")
    return EXPERIMENTS[label]


def _describe(experiment: Experiment, out: Path, results: Path, data_dir: Path | None) -> dict[str, Any]:
    runs = {budget: count_runs(experiment, out, budget=budget) for budget in BUDGETS}
    path = results / f"{experiment.slug}.json"
    rows = read_json(path)["rows"] if path.is_file() else []
    accuracies = [row for row in rows if row["metric"] == "test_accuracy"]
    return {
        "label": experiment.label,
        "chapter": experiment.chapter,
        "needs": "; ".join(
            filter(None, [", ".join(experiment.data), f"{experiment.gpu_minutes} GPU minutes"])
        ),
        "state": _state(experiment, rows, runs, data_dir),
        "done": max(runs["full"]["done"] + runs["quick"]["done"], _gathered(rows)),
        "planned": runs["full"]["planned"],
        "thesis": [row["thesis"] for row in accuracies] or None,
        "ours": [row["ours"] for row in accuracies] or None,
    }


def _gathered(rows: list[Any]) -> int:
    """Runs that stand behind the rows; their folders may be on another machine."""
    return len({(row["setting"], run["seed"]) for row in rows for run in row["runs"]})


def _state(experiment: Experiment, rows: list[Any], runs: dict[str, Any], data_dir: Path | None) -> str:
    is_whole = {row["setting"] for row in rows} >= {setting.name for setting in experiment.settings}
    if is_whole and all(
        row["seeds"] >= experiment.seeds and "full budget" in row["protocol"] for row in rows
    ):
        return "reproduced"
    if rows or runs["full"]["done"] or runs["quick"]["done"]:
        return "partly"
    has_data = all(has_files(name, data_dir) for name in experiment.data)
    return "not started" if has_data else "data missing"
