"""Figures of the REM chapter that look again at trained networks: rows of results as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from torchcaps.viz import (
    LevelShares,
    LineChart,
    Measured,
    draw_bars,
    draw_distributions,
    draw_lines,
    measure_seeds,
    to_png,
)

from ..records import Details, Rows, details_of

_CHARTS = {"quantized_accuracy": ("Accuracy, quantized", "%", 100), "entropy": ("Entropy", "bits", 1)}
_APART = 6.0, 0.08  # between two epochs that are named: percent of sparsity, or share of the range of values


def chart_keys(rows: Rows) -> bytes:
    """The number of parse trees of each class, from the lowest seed to the highest."""
    networks = {
        name: {
            of_class: measure_seeds([run.series["keys"].tolist()[number] for run in runs])
            for number, of_class in enumerate(runs[0].names)
        }
        for name, runs in details_of(rows).items()
    }
    return to_png(draw_bars({"Parse trees of each class": networks}, unit="trees"))


def chart_levels(rows: Rows) -> bytes:
    """Quantized accuracy and entropy against the number of levels."""
    networks = details_of(rows)
    ticks = next(iter(networks.values()))[0].series["levels"].tolist()
    charts = [
        LineChart(
            title,
            {name: _over_levels(runs, key, scale) for name, runs in networks.items()},
            across="levels",
            unit=unit,
            log_ticks=ticks,
        )
        for key, (title, unit, scale) in _CHARTS.items()
    ]
    return to_png(draw_lines(charts))


def _over_levels(runs: Sequence[Details], key: str, scale: int) -> list[tuple[int, Measured]]:
    return [
        (level, measure_seeds([scale * run.series[key].tolist()[number] for run in runs]))
        for number, level in enumerate(runs[0].series["levels"].tolist())
    ]


def chart_distributions(rows: Rows) -> bytes:
    """For each network, the share of couplings at each level, the mean over seeds."""
    networks = {
        name: LevelShares(
            np.array(runs[0].series["levels"]), np.mean([run.series["shares"] for run in runs], axis=0)
        )
        for name, runs in details_of(rows).items()
    }
    return to_png(draw_distributions(networks))


def chart_training(rows: Rows) -> bytes:
    """Accuracy and entropy against the sparsity reached along each training, with some epochs named."""
    first = {row.setting: row for row in reversed(rows)}
    runs = [run for name in details_of(rows) for run in first[name].runs if run.details]
    charts = []
    for key, (title, unit, scale) in _CHARTS.items():
        curves = {f"seed {run.facts.seed}": _along(run.details, key, scale) for run in runs}
        charts.append(
            LineChart(title, _with_names(curves), across="sparsity, %; numbers are epochs", unit=unit)
        )
    return to_png(draw_lines(charts))


class _Point(NamedTuple):
    """What an epoch reached: its sparsity in percent and its value."""

    epoch: int
    sparsity: float
    value: float


def _along(run: Details, key: str, scale: int) -> list[_Point]:
    columns = (run.series[name].tolist() for name in ("epoch", "sparsity", key))
    return [_Point(epoch, 100 * share, scale * value) for epoch, share, value in zip(*columns, strict=True)]


def _with_names(curves: Mapping[str, Sequence[_Point]]) -> dict[str, list[tuple[float, Measured]]]:
    """The curves with the names of epochs at points that are apart from all that have one."""
    values = [point.value for curve in curves.values() for point in curve]
    apart = _APART[1] * (max(values) - min(values))
    named: list[_Point] = []
    charted: dict[str, list[tuple[float, Measured]]] = {seed: [] for seed in curves}
    for seed, curve in curves.items():
        for point in curve:
            is_named = all(
                abs(point.sparsity - other.sparsity) > _APART[0] or abs(point.value - other.value) > apart
                for other in named
            )
            named += [point] if is_named else []
            words = f"{point.epoch}" if is_named else ""
            charted[seed].append((point.sparsity, Measured(point.value, words=words)))
    return charted
