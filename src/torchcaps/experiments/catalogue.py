"""Every table and figure of the thesis that reports a result, and how far each is reproduced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.data import check_dataset

from . import annealing, rem, rem_figures, smoke
from .plan import BUDGETS, EXPERIMENTS, Experiment
from .runner import count_runs

__all__ = ["EXPERIMENTS", "NOT_BUILT", "annealing", "list_experiments", "rem", "rem_figures", "smoke"]

_REM = "Capsule Networks Do Not Need to Model Everything"
_BACKBONES = "Towards Efficient Capsule Networks"
_UAV = "LSVL: Large-scale season-invariant visual localization for UAVs"
_POSE = "Encoding rotation representations as quaternions"
_LUNG = "Lung Nodules Segmentation with Capsule networks"

NOT_BUILT = {
    "fig:annealing": "Capsule networks with routing annealing",
    "fig:flops_vs_acc": _BACKBONES,
    "tab:performance-dynamiccaps": _BACKBONES,
    "fig:reconstruction": _REM,
    "tab:decoder-acc-supp": _REM,
    "tab:decoder-ent-supp": _REM,
    "tab:results-affnist": _REM,
    "tab:novelviewpoints": _REM,
    "tab:novelviewpoints_full_original": _REM,
    "fig:saliency_maps": _REM,
    "fig:saliency_maps_sn_az": _REM,
    "fig:saliency_maps_sn_el": _REM,
    "fig:parse_trees_cifar10_samples": _REM,
    "tab:lsl-time_to_convergence_and_error": _UAV,
    "fig:lsl-errorplots": _UAV,
    "tab:quaternions_tinyshapenetresults": _POSE,
    "fig:loss": _POSE,
    "fig:acc": _POSE,
    "fig:quaternions_tinyshapenetresults": _POSE,
    "tab:lung-results": _LUNG,
}


def list_experiments(out: Path, results: Path, data_dir: Path | None = None) -> list[dict[str, Any]]:
    """One row for each table and figure: chapter, needs, state, runs done and planned, thesis and ours."""
    built = [_describe(EXPERIMENTS[label], out, results, data_dir) for label in EXPERIMENTS.names()]
    empty = {"needs": "", "state": "not built", "done": 0, "planned": 0, "thesis": None, "ours": None}
    return [*built, *({"label": label, "chapter": chapter, **empty} for label, chapter in NOT_BUILT.items())]


def _describe(experiment: Experiment, out: Path, results: Path, data_dir: Path | None) -> dict[str, Any]:
    runs = {budget: count_runs(experiment, out, budget=budget) for budget in BUDGETS}
    path = results / f"{experiment.slug}.json"
    rows = json.loads(path.read_text())["rows"] if path.is_file() else []
    accuracies = [row for row in rows if row["metric"] == "test_accuracy"]
    return {
        "label": experiment.label,
        "chapter": experiment.chapter,
        "needs": f"{', '.join(experiment.data)}; {experiment.gpu_minutes} GPU minutes",
        "state": _state(experiment, rows, runs, data_dir),
        "done": runs["full"]["done"] + runs["quick"]["done"],
        "planned": runs["full"]["planned"],
        "thesis": [row["thesis"] for row in accuracies] or None,
        "ours": [row["ours"] for row in accuracies] or None,
    }


def _state(experiment: Experiment, rows: list[Any], runs: dict[str, Any], data_dir: Path | None) -> str:
    is_whole = {row["setting"] for row in rows} >= {setting.name for setting in experiment.settings}
    if is_whole and all(
        row["seeds"] >= experiment.seeds and "full budget" in row["protocol"] for row in rows
    ):
        return "reproduced"
    if rows or runs["full"]["done"] or runs["quick"]["done"]:
        return "partly"
    return "not started" if _has_data(experiment, data_dir) else "data missing"


def _has_data(experiment: Experiment, data_dir: Path | None) -> bool:
    try:
        return all(
            finding.is_present for name in experiment.data for finding in check_dataset(name, data_dir)
        )
    except UserError:
        return False
