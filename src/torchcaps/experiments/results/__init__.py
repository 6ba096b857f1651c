"""From the results of single runs to rows, tables and pages."""

from .gather import gather_runs, summarise, write_results
from .page import OTHER_DATA, FigureVerdict, decide_claim, judged_figures
from .tables import figures_of

__all__ = [
    "OTHER_DATA",
    "FigureVerdict",
    "decide_claim",
    "figures_of",
    "gather_runs",
    "judged_figures",
    "summarise",
    "write_results",
]
