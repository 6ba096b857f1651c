"""Several runs under one suite: a table of plain rows, and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchcaps.core import metric_of
from torchcaps.storage import write_bytes
from torchcaps.viz import Measured, draw_dots, to_png
from torchcaps.viz.text import drawable_labels

from .api import Measurement

_MOST_SERIES = 6  # that a chart has colours for
Charts = dict[str, dict[str, dict[str, Measured]]]
Found = Mapping[str, Sequence[Measurement]]  # by the name of the run


def table_of(found: Found) -> list[dict[str, Any]]:
    """A row for each condition and metric, a column for each run."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for run, measurements in found.items():
        for each in measurements:
            for name, value in each.metrics.items():
                row = rows.setdefault((each.group, each.condition, name), {})
                row[run] = metric_of(name).format(value)
    return [
        {
            "condition": f"{group} {condition}",
            "metric": metric_of(name).title,
            **{run: row.get(run, "-") for run in found},
        }
        for (group, condition, name), row in rows.items()
    ]


def as_json(found: Found, suite: str, limit: int | None = None) -> dict[str, Any]:
    """All numbers as plain data, with how many test images were asked for; None: those of the suite."""
    return {
        "suite": suite,
        "limit": limit,
        "runs": {
            run: [{"group": each.group, "condition": each.condition, **each.metrics} for each in measurements]
            for run, measurements in found.items()
        },
    }


def draw_suite(found: Found, path: Path) -> None:
    """A chart for each group of conditions: the first metric of each condition.

    Up to six runs are a series each. More stand side by side, each with the first and the last condition of
    the group.
    """
    charts: Charts = {}
    leading = next(iter(next(iter(found.values()))[0].metrics))
    metric = metric_of(leading)
    names = drawable_labels(list(found), len(found), "run")
    for run, measurements in zip(names, found.values(), strict=True):
        for group, values in _by_group(measurements, leading).items():
            shown = {name: Measured(metric.scale * value) for name, value in values.items()}
            if len(found) <= _MOST_SERIES:
                charts.setdefault(group, {})[run] = shown
                continue
            for words, name in (("first condition", next(iter(shown))), ("last condition", [*shown][-1])):
                charts.setdefault(group, {}).setdefault(words, {})[run] = shown[name]
    write_bytes(path, to_png(draw_dots(charts, unit=f"{metric.title}, {metric.unit}")))


def _by_group(measurements: Sequence[Measurement], name: str) -> dict[str, dict[str, float]]:
    """The values of one metric by group and condition."""
    values: dict[str, dict[str, float]] = {}
    for each in measurements:
        if name in each.metrics:
            values.setdefault(each.group, {})[each.condition] = each.metrics[name]
    return values
