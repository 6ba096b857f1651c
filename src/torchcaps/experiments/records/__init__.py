"""Typed records: the result of a run, the rows of a table, and what their numbers mean."""

from .details import Details, Picture, Series
from .metrics import metric_heading, metric_words
from .protocol import BUDGETS, Budget, Protocol, protocol_of, read_budget
from .result import RunFacts, RunResult, read_result
from .row import MeanCurve, Row, RowRun, Rows, by_setting, by_setting_and_metric, details_of, load_rows

__all__ = [
    "BUDGETS",
    "Budget",
    "Details",
    "MeanCurve",
    "Picture",
    "Protocol",
    "Row",
    "RowRun",
    "Rows",
    "RunFacts",
    "RunResult",
    "Series",
    "by_setting",
    "by_setting_and_metric",
    "details_of",
    "load_rows",
    "metric_heading",
    "metric_words",
    "protocol_of",
    "read_budget",
    "read_result",
]
