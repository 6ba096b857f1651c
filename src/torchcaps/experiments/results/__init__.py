"""From the results of single runs to rows, tables and pages."""

from .gather import gather_runs, summarise, write_results
from .judge import OTHER_DATA, FigureVerdict, judged_figures
from .page import decide_claim
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
