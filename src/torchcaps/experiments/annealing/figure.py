"""The figures of the chapter on routing annealing: curves over iterations, and dots for each network."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from torchcaps.viz import LineChart, Measured, draw_dots, draw_lines, to_png, with_deviation

from ..records import MeanCurve, Row, Rows, by_setting
from .names import ANNEALED, FIXED, FIXED_WAYS, GRID, WAYS, fixed_name, grid_name


def draw_fixed_and_annealed(rows: Rows) -> bytes:
    """Loss and accuracy against the number of iterations."""
    charts = []
    for title, metric in {"Test loss": "test_loss", "Test accuracy in %": "test_accuracy"}.items():
        found = by_setting(rows, metric)
        fixed = [
            (r, with_deviation(found[name].ours, found[name].spread))
            for r in FIXED
            if (name := fixed_name(r)) in found
        ]
        curve = (found[ANNEALED].curve if ANNEALED in found else None) or MeanCurve()
        annealed = list(zip(curve.at, map(with_deviation, curve.mean, curve.spread), strict=True))
        curves = {"fixed, one training for each": fixed, name_annealed(found): annealed}
        charts.append(LineChart(title, curves, across="iterations", log_ticks=FIXED))
    return to_png(draw_lines(charts))


def name_annealed(found: Mapping[str, Row]) -> str:
    """What the curve of the annealed runs is called: with their budget where other runs have another."""
    budgets = {row.budget for row in found.values()}
    shown = f", {found[ANNEALED].budget} budget" if ANNEALED in found and len(budgets) > 1 else ""
    return f"annealed, one training{shown}"


def draw_grid(rows: Rows) -> bytes:
    """The accuracy of each size, with the number of iterations above it."""
    accuracies, chosen = by_setting(rows, "test_accuracy"), by_setting(rows, "iterations")
    charts: dict[str, dict[str, dict[str, Measured]]] = {}
    for types, poses in sorted(GRID, key=lambda size: (size[1], size[0])):
        title = f"Primary capsules {poses[0]}D, class capsules {poses[1]}D"
        chart = charts.setdefault(title, {way: {} for way in WAYS})
        for way in WAYS:
            name = grid_name(types, poses, way)
            if name in accuracies:
                row = accuracies[name]
                number = FIXED_WAYS.get(way) or median(run.value for run in chosen[name].runs)
                group = f"{types} type{'s' if types > 1 else ''}"
                chart[way][group] = with_deviation(row.ours, row.spread, f"{number:g}", most=100)
    has_one = all(len(row.runs) == 1 for row in accuracies.values())
    note = f"above each dot: iterations{'; one seed each' if has_one else ', the median over seeds'}"
    return to_png(draw_dots(charts, unit="test accuracy, %", note=note))
