"""The figure of the chapter on lung nodules."""

from __future__ import annotations

from torchcaps.viz import LineChart, Measured, draw_lines, to_png, with_deviation

from ..records import Rows, by_setting
from .claims import METRIC, MODELS, SHARES, setting_name


def draw_figure(rows: Rows) -> bytes:
    """Dice, and the regions whose nodule was missed, over the share of the training patients."""
    panels = [
        LineChart(title, _curves(rows, metric), across="training patients, %", unit=unit)
        for title, metric, unit in (
            ("mean Dice of test regions", METRIC, "Dice"),
            ("regions without a single right pixel", "missed_share", "%"),
        )
    ]
    return to_png(draw_lines(panels))


def _curves(rows: Rows, metric: str) -> dict[str, list[tuple[float, Measured]]]:
    """A line for each network."""
    found = by_setting(rows, metric)
    curves = {
        title: [
            (100 * share, with_deviation(row.ours, row.spread))
            for share in reversed(SHARES)
            if (row := found.get(setting_name(model, share))) is not None
        ]
        for model, title in MODELS.items()
    }
    return {title: points for title, points in curves.items() if points}
