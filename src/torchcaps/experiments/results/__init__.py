"""From the results of single runs to rows, tables and pages."""

from .gather import gather_runs, mean_curve, rows_of_runs, summarise, write_results
from .overview import render_overview
from .page import (
    OTHER_DATA,
    FigureVerdict,
    decide_claim,
    judge,
    judge_count,
    judged_figures,
    render_page,
    rows_in,
)
from .tables import figures_of, render_table

__all__ = [
    "OTHER_DATA",
    "FigureVerdict",
    "decide_claim",
    "figures_of",
    "gather_runs",
    "judge",
    "judge_count",
    "judged_figures",
    "mean_curve",
    "render_overview",
    "render_page",
    "render_table",
    "rows_in",
    "rows_of_runs",
    "summarise",
    "write_results",
]
