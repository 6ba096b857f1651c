"""The figure of the chapter on flights: error and spread of the belief after each update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchcaps.viz import LineChart, Measured, draw_lines, to_png

from ..records import Details, Rows, details_of
from .claims import name_of

DRAWN = (
    name_of("capsules", 16, "bayesian"),
    name_of("capsules", 16, "linear"),
    name_of("fcn", 16, "bayesian"),
    name_of("fcn", 128, "bayesian"),
    "abBRIEF, bayesian",
    "odometry alone",
)


def draw_curves(rows: Rows, names: Sequence[str] = DRAWN) -> bytes:
    """Error and spread of the belief after each update, by default of the settings that the thesis draws.

    Lines are medians over flights, bands reach from their 10th to their 90th percentile, and both are means
    over seeds. Where none of the names has runs, all settings are drawn.
    """
    found = {name: runs for name, runs in details_of(rows).items() if runs}
    drawn = {name: runs for name, runs in found.items() if name in names} or found
    panels = [
        LineChart(
            title,
            {name: _curve(runs, part) for name, runs in drawn.items()},
            across="update; bands: 10th to 90th percentile of flights",
            unit="m",
            starts_at_zero=True,
        )
        for title, part in (("median error", "error"), ("median spread of the belief", "sigma"))
    ]
    return to_png(draw_lines(panels))


def _curve(runs: Sequence[Details], part: str) -> list[tuple[int, Measured]]:
    levels = (
        np.mean([run.series[f"{part} {level}"] for run in runs], 0) for level in ("median", "low", "high")
    )
    return [
        (number, Measured(float(middle), float(low), float(high)))
        for number, (middle, low, high) in enumerate(zip(*levels, strict=True), start=1)
    ]
