"""The figures of the REM chapter, from the rows of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .style import COOL, INK, MUTED, TEXT, TITLE, WARM, axes_at, canvas, plain_chart, to_png

Row = Mapping[str, Any]
_COLOURS = (COOL, WARM)


def save_keys(rows: Sequence[Row], path: Path) -> None:
    """Bars: the number of parse trees of each class, one colour for each network."""
    curves = _curves(rows)
    figure = canvas(760, 330)
    axes = _chart(figure, (70, 50, 660, 220), "Parse trees of each class", "trees")
    width = 0.8 / len(curves)
    for number, (name, runs) in enumerate(curves.items()):
        keys = _stack(runs, "keys")
        places = np.arange(keys.shape[1]) + (number - (len(curves) - 1) / 2) * width
        axes.bar(
            places, keys.mean(0), width * 0.9, color=_COLOURS[number % 2], label=name, yerr=_spread(keys)
        )
    names = next(iter(curves.values()))[0]["class"]
    axes.set_xticks(range(len(names)), names)
    _legend(axes)
    path.write_bytes(to_png(figure))


def save_levels(rows: Sequence[Row], path: Path) -> None:
    """Two charts: quantized accuracy and entropy against the number of levels."""
    figure = canvas(900, 350)
    charts = {
        "quantized_accuracy": _chart(figure, (70, 50, 360, 220), "Accuracy, quantized", "%", "levels"),
        "entropy": _chart(figure, (510, 50, 360, 220), "Entropy", "bits", "levels"),
    }
    for number, (name, runs) in enumerate(_curves(rows).items()):
        for key, axes in charts.items():
            values = _stack(runs, key) * (100 if key.endswith("accuracy") else 1)
            _line(axes, np.array(runs[0]["levels"]), values, _COLOURS[number % 2], name)
            axes.set_xscale("log", base=2)
            axes.set_xticks(runs[0]["levels"], [str(level) for level in runs[0]["levels"]])
            axes.minorticks_off()
    # below both charts: beside a title there is no room for two names
    names = charts["entropy"].get_legend_handles_labels()
    figure.legend(*names, frameon=False, fontsize=TEXT, labelcolor=INK, loc="lower center", ncols=2)
    path.write_bytes(to_png(figure))


def save_distributions(rows: Sequence[Row], path: Path) -> None:
    """For each network, the share of couplings at each level, a thin line per class and a bold mean."""
    curves = _curves(rows)
    figure = canvas(90 + 400 * len(curves), 330)
    for number, (name, runs) in enumerate(curves.items()):
        axes = _chart(figure, (70 + 400 * number, 50, 340, 220), name, "share of couplings", "coupling")
        levels, shares = np.array(runs[0]["levels"]), np.mean([run["shares"] for run in runs], axis=0)
        for of_class in shares:
            axes.plot(levels, of_class, color=_COLOURS[number % 2], alpha=0.3, linewidth=0.9)
        axes.plot(levels, shares.mean(0), color=_COLOURS[number % 2], linewidth=2.2, marker="o", markersize=4)
        axes.set_yscale("symlog", linthresh=1e-4)
        axes.set_ylim(0, 1.2)
    path.write_bytes(to_png(figure))


def save_training(rows: Sequence[Row], path: Path) -> None:
    """Accuracy and entropy against the sparsity reached along one training."""
    figure = canvas(900, 330)
    charts = {
        "quantized_accuracy": _chart(figure, (70, 50, 360, 220), "Accuracy, quantized", "%", "sparsity, %"),
        "entropy": _chart(figure, (510, 50, 360, 220), "Entropy", "bits", "sparsity, %"),
    }
    for runs in _curves(rows).values():
        for run in runs:
            for (key, axes), colour in zip(charts.items(), _COLOURS, strict=True):
                values = np.array(run[key]) * (100 if key.endswith("accuracy") else 1)
                axes.plot(
                    100 * np.array(run["sparsity"]), values, color=colour, marker="o", markersize=4, alpha=0.8
                )
                _name_epochs(axes, run, values)
    path.write_bytes(to_png(figure))


def _name_epochs(axes: Axes, run: Mapping[str, Any], values: NDArray[np.float64]) -> None:
    """Write the epoch at its point, where the last one written is not in the way."""
    last = -np.inf
    for share, value, epoch in zip(run["sparsity"], values, run["epoch"], strict=True):
        if 100 * share - last > 1.5:
            place = (100 * share, value)
            axes.annotate(f"{epoch}", place, (3, 5), textcoords="offset points", fontsize=7, color=MUTED)
            last = 100 * share


def _curves(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """The curves of all runs, by setting; its first row carries them."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault(row["setting"], [run["curve"] for run in row["runs"] if "curve" in run])
    return curves


def _stack(runs: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    return np.array([run[key] for run in runs], dtype=np.float64)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    return values.std(0, ddof=1) if len(values) > 1 else None


def _line(axes: Axes, x: NDArray[Any], values: NDArray[np.float64], colour: str, name: str) -> None:
    mean, spread = values.mean(0), _spread(values)
    axes.plot(x, mean, color=colour, marker="o", markersize=4, label=name)
    if spread is not None:
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0)


def _chart(figure: Figure, box: tuple[int, int, int, int], title: str, unit: str, across: str = "") -> Axes:
    axes = axes_at(figure, box)
    plain_chart(axes)
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK, pad=10)
    axes.set_ylabel(unit, fontsize=TEXT, color=MUTED)
    axes.set_xlabel(across, fontsize=TEXT, color=MUTED)
    return axes


def _legend(axes: Axes) -> None:
    axes.legend(
        frameon=False,
        fontsize=TEXT,
        labelcolor=INK,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
        borderaxespad=0.2,
    )
