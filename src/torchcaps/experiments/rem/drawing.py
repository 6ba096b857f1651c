"""Figures of the REM chapter that look again at trained networks: rows of results as charts."""

from __future__ import annotations

from collections.abc import Sequence

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
_APART = 2.5  # percent of sparsity between two epochs that are named


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
    charts = [
        LineChart(
            title,
            {f"seed {run.facts.seed}": _along(run.details, key, scale) for run in runs},
            across="sparsity, %; numbers are epochs",
            unit=unit,
        )
        for key, (title, unit, scale) in _CHARTS.items()
    ]
    return to_png(draw_lines(charts))


def _along(run: Details, key: str, scale: int) -> list[tuple[float, Measured]]:
    points, last = [], -np.inf
    columns = (run.series[name].tolist() for name in ("sparsity", key, "epoch"))
    for share, value, epoch in zip(*columns, strict=True):
        is_named = abs(100 * share - last) > _APART
        points.append((100 * share, Measured(scale * value, words=f"{epoch}" if is_named else "")))
        last = 100 * share if is_named else last
    return points
