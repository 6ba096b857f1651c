"""From the result files of single runs to one row of a thesis table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.train.checkpoint import write_json


def summarise(
    runs: Sequence[dict[str, Any]], *, setting: str, metric: str, thesis: float | None, protocol: str
) -> dict[str, Any]:
    """Mean and deviation over seeds of one metric, accuracies in percent, with what each run was made by."""
    if not runs:
        raise UserError(f"no runs for {setting}")
    seeds = [run["seed"] for run in runs]
    if len(set(seeds)) != len(seeds):
        raise UserError(f"{setting}: a seed occurs twice in {seeds}")
    scale = 100 if metric.endswith("accuracy") else 1
    values = [scale * run["metrics"][metric] for run in runs]
    kept = ("seed", "commit", "versions", "device", "seconds", "precision", "parameters")
    return {
        "setting": setting,
        "metric": metric,
        "thesis": thesis,
        "ours": round(mean(values), 4),
        "spread": round(stdev(values), 4) if len(values) > 1 else None,
        "seeds": len(values),
        "protocol": protocol,
        "runs": [{**{key: run[key] for key in kept}, metric: run["metrics"][metric]} for run in runs],
    }


def write_results(folder: Path, label: str, rows: Sequence[dict[str, Any]], command: str) -> None:
    """Write `results/<label>.json`; rows of settings that are not given again are kept."""
    path = folder / f"{label}.json"
    before = json.loads(path.read_text())["rows"] if path.is_file() else []
    renewed = {(row["setting"], row["metric"]) for row in rows}
    kept = [row for row in before if (row["setting"], row["metric"]) not in renewed]
    write_json(path, {"label": label, "command": command, "rows": [*kept, *rows]})
