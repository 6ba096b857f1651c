"""Charts of measured numbers."""

from .accuracy_entropy import EntropyDot, draw_accuracy_entropy
from .bench import draw_bench
from .coupling_fans import draw_coupling_fans
from .curves import draw_curves
from .distributions import LevelShares, draw_distributions
from .groups import draw_bars, draw_dots
from .lines import LineChart, draw_lines
from .measured import Measured, measure_seeds, with_deviation
from .surprise import draw_surprise

__all__ = [
    "EntropyDot",
    "LevelShares",
    "LineChart",
    "Measured",
    "draw_accuracy_entropy",
    "draw_bars",
    "draw_bench",
    "draw_coupling_fans",
    "draw_curves",
    "draw_distributions",
    "draw_dots",
    "draw_lines",
    "draw_surprise",
    "measure_seeds",
    "with_deviation",
]
