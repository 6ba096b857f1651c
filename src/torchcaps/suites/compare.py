"""Several runs under one suite: a table of plain rows, and a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from torchcaps.core import Metric, metric_of
from torchcaps.storage import write_bytes
from torchcaps.train import provenance
from torchcaps.viz import Measured, draw_dots, drawable_labels, to_png

from .api import Measurement

_MOST_COLUMNS = 4  # a table of one run has at most so many metrics as columns
_MOST_SERIES = 6  # a chart has colours for so many runs
Charts = dict[str, dict[str, dict[str, Measured]]]
Found = Mapping[str, Sequence[Measurement]]  # by the name of the run


def table_of(found: Found) -> list[dict[str, Any]]:
    """A row for each condition and metric, a column for each run; few metrics of one run are columns."""
    names = dict.fromkeys(name for rows in found.values() for each in rows for name in each.metrics)
    if len(found) == 1 and 1 < len(names) <= _MOST_COLUMNS:
        (measurements,) = found.values()
        return [_row_of(each, list(names)) for each in measurements]
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


def _row_of(measurement: Measurement, names: Sequence[str]) -> dict[str, Any]:
    """What was measured under one condition, by the titles of the metrics."""
    metrics = measurement.metrics
    cells = {name: metric_of(name).format(metrics[name]) if name in metrics else "-" for name in names}
    return {
        "condition": f"{measurement.group} {measurement.condition}",
        **{metric_of(name).title: cell for name, cell in cells.items()},
    }


def as_json(found: Found, suite: str, limit: int | None = None, device: str = "cpu") -> dict[str, Any]:
    """All numbers as plain data, with how many test images were asked for; None: those of the suite.

    Also the command, with runs by the names of their folders, and the commit, versions and device it ran on.
    """
    limited = "" if limit is None else f" --limit {limit}"
    return {
        "suite": suite,
        "limit": limit,
        "command": f"torchcaps eval {' '.join(found)} --suite {suite}{limited} --json",
        **provenance(torch.device(device)),
        "runs": {
            run: [{"group": each.group, "condition": each.condition, **each.metrics} for each in measurements]
            for run, measurements in found.items()
        },
    }


def draw_suite(found: Found, path: Path) -> None:
    """A chart for each group of conditions: the first metric of each condition.

    A group that lacks the first metric of all is drawn by its own, which its title names.
    Up to six runs are a series each, and a group of one condition shows all its metrics of that unit. More
    runs stand side by side, each with the first and the last condition of the group.
    """
    metric = metric_of(next(iter(next(iter(found.values()))[0].metrics)))
    named = dict(zip(drawable_labels(list(found), len(found), "run"), found.values(), strict=True))
    has_room = len(named) <= _MOST_SERIES
    is_mixed = has_room and any(_by_metric(each, metric) for each in named.values())
    charts = _a_series_each(named, metric, is_mixed=is_mixed) if has_room else _side_by_side(named, metric)
    unit = f"share, {metric.unit}" if is_mixed else f"{metric.title}, {metric.unit}"
    write_bytes(path, to_png(draw_dots(charts, unit=unit)))


def _a_series_each(found: Found, metric: Metric, *, is_mixed: bool) -> Charts:
    charts: Charts = {}
    for run, measurements in found.items():
        several = _by_metric(measurements, metric)
        for group, shown in (_by_group(measurements, metric) | several).items():
            own = _metric_in(measurements, group, metric)
            is_named = group not in several and (is_mixed or own is not metric)
            title = f"{group}: {own.title}" if is_named else group
            charts.setdefault(title, {})[run] = shown
    return charts


def _side_by_side(found: Found, metric: Metric) -> Charts:
    charts: Charts = {}
    for run, measurements in found.items():
        for group, shown in _by_group(measurements, metric).items():
            ends = dict.fromkeys((next(iter(shown)), [*shown][-1]))  # one where the group has one condition
            chart = charts.setdefault(f"{group}, {' and '.join(ends)}", {})
            for words, name in zip(("first condition", "last condition"), ends, strict=False):
                chart.setdefault(words, {})[run] = shown[name]
    return charts


def _metric_in(measurements: Sequence[Measurement], group: str, metric: Metric) -> Metric:
    """The metric by which a group is drawn: this one, or its own first where it lacks this one."""
    names = [name for each in measurements if each.group == group for name in each.metrics]
    return metric if metric.name in names else metric_of(names[0])


def _by_group(measurements: Sequence[Measurement], metric: Metric) -> dict[str, dict[str, Measured]]:
    """The values of one metric by group and condition."""
    values: dict[str, dict[str, Measured]] = {}
    for each in measurements:
        own = _metric_in(measurements, each.group, metric)
        if own.name in each.metrics and own.unit == metric.unit:
            shown = Measured(own.scale * each.metrics[own.name])
            values.setdefault(each.group, {})[each.condition] = shown
    return values


def _by_metric(measurements: Sequence[Measurement], like: Metric) -> dict[str, dict[str, Measured]]:
    """For groups of one condition and several metrics, those in the unit of `like`, by title."""
    counts = Counter(each.group for each in measurements)
    alone = [each for each in measurements if counts[each.group] == 1 and len(each.metrics) > 1]
    values: dict[str, dict[str, Measured]] = {}
    for each in alone:
        for metric, value in ((metric_of(name), value) for name, value in each.metrics.items()):
            if metric.unit == like.unit:
                values.setdefault(each.group, {})[metric.title] = Measured(metric.scale * value)
    return values
