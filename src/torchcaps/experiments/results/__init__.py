"""From the results of single runs to rows, tables and pages."""

from .gather import gather_runs, mean_curve, summarise, write_results
from .overview import render_overview, write_overview
from .page import decide_claims, judge, render_page, write_page
from .tables import load_results, render_table

__all__ = [
    "decide_claims",
    "gather_runs",
    "judge",
    "load_results",
    "mean_curve",
    "render_overview",
    "render_page",
    "render_table",
    "summarise",
    "write_overview",
    "write_page",
    "write_results",
]
