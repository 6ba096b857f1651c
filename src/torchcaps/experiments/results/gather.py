"""From the result files of single runs to one row of a thesis table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.storage import write_json

from ..plan import BUDGETS, Experiment, PlannedRun, protocol_of
from .overview import write_overview
from .page import write_page
from .tables import load_results


def summarise(
    runs: Sequence[dict[str, Any]],
    *,
    setting: str,
    metric: str,
    thesis: float | None,
    protocol: str,
    is_first: bool = True,
) -> dict[str, Any]:
    """Mean and deviation over seeds of one metric, shares in percent, with what each run was made by.

    The curves of the runs, which may hold pictures, go with the first metric of a setting.
    """
    if not runs:
        raise UserError(f"no runs for {setting}")
    seeds = [run["seed"] for run in runs]
    if len(set(seeds)) != len(seeds):
        raise UserError(f"{setting}: a seed occurs twice in {seeds}")
    scale = _scale(metric)
    values = [scale * run["metrics"][metric] for run in runs]
    facts = ("seed", "commit", "versions", "device", "seconds", "precision", "parameters")
    kept = (*facts, "curve") if is_first else facts
    return {
        "setting": setting,
        "metric": metric,
        "thesis": thesis,
        "ours": round(mean(values), 4),
        "spread": round(stdev(values), 4) if len(values) > 1 else None,
        "seeds": len(values),
        "protocol": protocol,
        "runs": [
            {**{key: run[key] for key in kept if key in run}, **_epochs(run), metric: run["metrics"][metric]}
            for run in runs
        ],
    }


def _epochs(run: Mapping[str, Any]) -> dict[str, int]:
    """How many epochs a training took, and how many it might have taken."""
    if "epochs" not in run["metrics"] or "recipe" not in run:
        return {}
    return {"epochs": run["metrics"]["epochs"], "epochs_allowed": run["recipe"]["epochs"]}


def _scale(metric: str) -> int:
    return 100 if metric.endswith(("accuracy", "sparsity", "share")) else 1


def mean_curve(curves: Sequence[Mapping[int, float]], metric: str) -> dict[str, list[Any]]:
    """Mean and deviation over runs at every place that a run has reached, shares in percent."""
    scale = _scale(metric)
    places = sorted({place for curve in curves for place in curve})
    values = [[scale * curve[place] for curve in curves if place in curve] for place in places]
    return {
        "at": list(places),
        "mean": [round(mean(some), 4) for some in values],
        "spread": [round(stdev(some), 4) if len(some) > 1 else None for some in values],
        "seeds": [len(some) for some in values],
    }


def write_results(
    folder: Path,
    label: str,
    rows: Sequence[dict[str, Any]],
    command: str,
    *,
    order: Sequence[tuple[str, str]] = (),
) -> None:
    """Write `results/<label>.json`; rows not given again are kept, and so are those of a larger budget.

    Rows whose setting and metric are in `order` come first and in that order.
    """
    path = folder / f"{label}.json"
    before = json.loads(path.read_text())["rows"] if path.is_file() else []
    merged = {(row["setting"], row["metric"]): row for row in before}
    for row in rows:
        old = merged.get((row["setting"], row["metric"]))
        if old is None or _size(row) >= _size(old):
            merged[row["setting"], row["metric"]] = row
    ranks = {place: rank for rank, place in enumerate(order)}
    ordered = sorted(merged.values(), key=lambda row: ranks.get((row["setting"], row["metric"]), len(ranks)))
    write_json(path, {"label": label, "command": command, "rows": ordered})


def _size(row: Mapping[str, Any]) -> int:
    budget = row["protocol"].partition(" ")[0]
    return BUDGETS.index(budget) if budget in BUDGETS else 0


def gather_runs(experiment: Experiment, out: Path, results: Path, *, budget: str, command: str) -> int:
    """Write `results/<label>.json`, picture and page from the finished runs; the number of rows."""
    rows: list[dict[str, Any]] = []
    for setting in experiment.settings:
        any_run = PlannedRun(experiment=experiment, setting=setting, budget=budget, seed=0).folder(out)
        start = any_run.name.removesuffix("0")  # other names may begin with it too, and go on with a number
        paths = sorted(any_run.parent.glob(f"{start}[0-9]*/result.json"))
        own = [path for path in paths if path.parent.name.removeprefix(start).isdecimal()]
        runs = [json.loads(path.read_text()) for path in own]
        found = {protocol_of(run, budget, setting.note): None for run in runs}
        protocol = "; or ".join(found)
        measured = [name for name in experiment.metrics if any(name in run["metrics"] for run in runs)]
        for metric in measured:
            having = [run for run in runs if metric in run["metrics"]]
            row = summarise(
                having,
                setting=setting.name,
                metric=metric,
                thesis=setting.thesis_value(metric),
                protocol=protocol,
                is_first=metric == measured[0],
            )
            curves = [curve for curve in map(partial(_curve, experiment, metric), having) if curve]
            rows.append(row | ({"curve": mean_curve(curves, metric)} if curves else {}))
    if rows:
        order = [(setting.name, metric) for setting in experiment.settings for metric in experiment.metrics]
        write_results(results, experiment.slug, rows, command, order=order)
        if experiment.draw is not None:
            experiment.draw(load_results(results, experiment.slug), results / f"{experiment.slug}.png")
        write_page(experiment, results)
        write_overview(results)
    return len(rows)


def _curve(experiment: Experiment, metric: str, run: dict[str, Any]) -> Mapping[int, float]:
    return {} if experiment.curve is None else experiment.curve(run, metric)
