"""The figure of the chapter on efficient capsules."""

from __future__ import annotations

from torchcaps.viz import LineChart, Measured, draw_lines, to_png, with_deviation

from ..records import Rows, by_setting
from .names import SHARES, TRUNKS, WAYS, capsnet_name


def draw_figure(rows: Rows) -> bytes:
    """Accuracy over operations, one panel for each trunk."""
    costs, found = by_setting(rows, "training_gflops"), by_setting(rows, "test_accuracy")

    def points(trunk: str, way: str) -> list[tuple[float, Measured]]:
        named = [(kept, capsnet_name(trunk, kept, way)) for kept in SHARES]
        return sorted(
            (costs[name].ours, with_deviation(row.ours, row.spread, f"{100 * (1 - kept):.0f} %", most=100))
            for kept, name in named
            if (row := found.get(name)) is not None and name in costs
        )

    across, unit = "billions of operations to train on one image", "test accuracy, %"
    charts = [
        LineChart(trunk, curves, across=across, unit=unit, starts_at_zero=True)
        for trunk in TRUNKS
        if any((curves := {way: points(trunk, way) for way in (*WAYS, "factorised")}).values())
    ]
    return to_png(draw_lines(charts))
