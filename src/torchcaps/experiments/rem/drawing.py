"""Figures of the REM chapter that look again at trained networks: rows of results as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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

from ..plan import Rows

_CHARTS = {"quantized_accuracy": ("Accuracy, quantized", "%", 100), "entropy": ("Entropy", "bits", 1)}
_APART = 2.5  # percent of sparsity between two epochs that are named


def save_keys(rows: Rows, path: Path) -> None:
    """The number of parse trees of each class, from the lowest seed to the highest."""
    networks = {
        name: {
            of_class: measure_seeds([run["keys"][number] for run in runs])
            for number, of_class in enumerate(runs[0]["class"])
        }
        for name, runs in _curves(rows).items()
    }
    path.write_bytes(to_png(draw_bars({"Parse trees of each class": networks}, unit="trees")))


def save_levels(rows: Rows, path: Path) -> None:
    """Quantized accuracy and entropy against the number of levels."""
    networks = _curves(rows)
    ticks = next(iter(networks.values()))[0]["levels"]
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
    path.write_bytes(to_png(draw_lines(charts)))


def _over_levels(runs: Sequence[Mapping[str, Any]], key: str, scale: int) -> list[tuple[int, Measured]]:
    return [
        (level, measure_seeds([scale * run[key][number] for run in runs]))
        for number, level in enumerate(runs[0]["levels"])
    ]


def save_distributions(rows: Rows, path: Path) -> None:
    """For each network, the share of couplings at each level, the mean over seeds."""
    networks = {
        name: LevelShares(np.array(runs[0]["levels"]), np.mean([run["shares"] for run in runs], axis=0))
        for name, runs in _curves(rows).items()
    }
    path.write_bytes(to_png(draw_distributions(networks)))


def save_training(rows: Rows, path: Path) -> None:
    """Accuracy and entropy against the sparsity reached along each training, with some epochs named."""
    runs = [run for of_setting in _curves(rows).values() for run in of_setting]
    charts = [
        LineChart(
            title,
            {f"seed {seed}": _along(run, key, scale) for seed, run in zip(_seeds(rows), runs, strict=True)},
            across="sparsity, %; numbers are epochs",
            unit=unit,
        )
        for key, (title, unit, scale) in _CHARTS.items()
    ]
    path.write_bytes(to_png(draw_lines(charts)))


def _along(run: Mapping[str, Any], key: str, scale: int) -> list[tuple[float, Measured]]:
    points, last = [], -np.inf
    for share, value, epoch in zip(run["sparsity"], run[key], run["epoch"], strict=True):
        is_named = abs(100 * share - last) > _APART
        points.append((100 * share, Measured(scale * value, words=f"{epoch}" if is_named else "")))
        last = 100 * share if is_named else last
    return points


def _curves(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """The curves of all runs, by setting; its first row carries them."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault(row["setting"], [run["curve"] for run in row["runs"] if "curve" in run])
    return curves


def _seeds(rows: Rows) -> list[int]:
    """The seeds of the runs that have curves, in the order of `_curves`."""
    first = {row["setting"]: row for row in reversed(rows)}
    ordered = dict.fromkeys(row["setting"] for row in rows)
    return [run["seed"] for setting in ordered for run in first[setting]["runs"] if "curve" in run]
