"""From the result files of single runs to one row of a thesis table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.train.checkpoint import write_json

from .plan import Experiment, PlannedRun
from .tables import load_results


def summarise(
    runs: Sequence[dict[str, Any]], *, setting: str, metric: str, thesis: float | None, protocol: str
) -> dict[str, Any]:
    """Mean and deviation over seeds of one metric, shares in percent, with what each run was made by."""
    if not runs:
        raise UserError(f"no runs for {setting}")
    seeds = [run["seed"] for run in runs]
    if len(set(seeds)) != len(seeds):
        raise UserError(f"{setting}: a seed occurs twice in {seeds}")
    scale = 100 if metric.endswith(("accuracy", "sparsity", "share")) else 1
    values = [scale * run["metrics"][metric] for run in runs]
    kept = ("seed", "commit", "versions", "device", "seconds", "precision", "parameters", "curve")
    return {
        "setting": setting,
        "metric": metric,
        "thesis": thesis,
        "ours": round(mean(values), 4),
        "spread": round(stdev(values), 4) if len(values) > 1 else None,
        "seeds": len(values),
        "protocol": protocol,
        "runs": [
            {**{key: run[key] for key in kept if key in run}, metric: run["metrics"][metric]} for run in runs
        ],
    }


def write_results(folder: Path, label: str, rows: Sequence[dict[str, Any]], command: str) -> None:
    """Write `results/<label>.json`; rows of settings that are not given again are kept."""
    path = folder / f"{label}.json"
    before = json.loads(path.read_text())["rows"] if path.is_file() else []
    renewed = {(row["setting"], row["metric"]) for row in rows}
    kept = [row for row in before if (row["setting"], row["metric"]) not in renewed]
    write_json(path, {"label": label, "command": command, "rows": [*kept, *rows]})


def gather_runs(experiment: Experiment, out: Path, results: Path, *, budget: str, command: str) -> int:
    """Write `results/<label>.json` and the picture from the finished runs; the number of rows."""
    rows: list[dict[str, Any]] = []
    for setting in experiment.settings:
        any_run = PlannedRun(experiment=experiment, setting=setting, budget=budget, seed=0).folder(out)
        paths = sorted(any_run.parent.glob(f"{any_run.name.removesuffix('0')}[0-9]*/result.json"))
        runs = [json.loads(path.read_text()) for path in paths]
        protocol = experiment.protocol(setting, budget)
        for metric in experiment.metrics:
            having = [run for run in runs if metric in run["metrics"]]
            if having:
                thesis = setting.thesis_value(metric)
                rows.append(
                    summarise(having, setting=setting.name, metric=metric, thesis=thesis, protocol=protocol)
                )
    if rows:
        write_results(results, experiment.slug, rows, command)
        if experiment.draw is not None:
            experiment.draw(load_results(results, experiment.slug), results / f"{experiment.slug}.png")
    return len(rows)
