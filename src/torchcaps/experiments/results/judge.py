"""Whether rows confirm the figures that the thesis prints."""

from __future__ import annotations

from typing import Final, Literal

from torchcaps.core import Number, metric_of

from ..plan import THESIS_SEEDS, Experiment, Verdict, excess, mean_of
from ..records import Row, Rows

FigureVerdict = Verdict | Literal["other data"]
OTHER_DATA: Final = "other data"
_SAME_SPARSITY, _SAME_SHARE = 5.0, 0.05
_SAME_UNITS = {"%": 0.5, "bits": 0.5}


def judged_figures(experiment: Experiment, rows: Rows) -> list[tuple[Row, FigureVerdict]]:
    """The rows that the thesis has a figure for, with the verdict on it.

    No figure goes beyond the thesis's where the accuracy of the same setting falls short: a network that
    knows less may well be smaller.
    """
    short = {row.setting for row in rows if _falls_short(row)}
    return [
        (row, _judge_in(experiment, row, row.thesis, is_fair=row.setting not in short))
        for row in rows
        if row.thesis is not None
    ]


def _falls_short(row: Row) -> bool:
    """Whether a row is an accuracy that is lower than the thesis's by more than counts as the same."""
    is_accuracy = row.metric in ("test_accuracy", "quantized_accuracy")
    return is_accuracy and row.thesis is not None and row.thesis - row.ours > same_as(row.metric, row.thesis)


def _judge_in(experiment: Experiment, row: Row, thesis: Number, *, is_fair: bool) -> FigureVerdict:
    if is_of_other_data(experiment, row):
        return OTHER_DATA
    verdict = judge_count(row, thesis) if row.metric in experiment.counted else judge(row, thesis)
    if verdict == "beyond" and not is_fair:
        return "not confirmed" if row.budget == "full" else "open"
    return verdict


def is_of_other_data(experiment: Experiment, row: Row) -> bool:
    """Whether the thesis's figure beside a row is of other images or flights."""
    return row.thesis is not None and row.metric in experiment.other_data


def judge(row: Row, thesis: Number) -> Verdict:
    """The verdict on the figure that the thesis prints, by a row."""
    if row.spread is None:
        return "open"  # one seed says nothing of the others
    effect, same = excess(mean_of(row), thesis, over_seeds=THESIS_SEEDS), same_as(row.metric, thesis)
    if abs(effect.size) + effect.margin <= same:
        return "confirmed"
    if abs(effect.size) - effect.margin <= same:
        return "open"
    metric, is_full = metric_of(row.metric), row.budget == "full"
    if metric.is_better(float(row.ours), float(thesis)) and (is_full or metric.better == "higher"):
        return "beyond"
    return "not confirmed" if is_full else "open"


def judge_count(row: Row, thesis: Number) -> Verdict:
    """The verdict on a printed figure by a row of which one run is enough.

    Runs that differ show that the number is none of the network alone, and a smoke run has another network:
    both are judged as any other row is.
    """
    if row.spread or row.budget == "smoke":
        return judge(row, thesis)
    decimals = len(str(thesis).partition(".")[2])
    return "confirmed" if round(row.ours, decimals) == thesis else "not confirmed"


def same_as(metric: str, figure: Number) -> float:
    """How far from a figure counts as the same, in the unit of the metric."""
    if metric.endswith("sparsity"):
        return _SAME_SPARSITY
    return _SAME_UNITS.get(metric_of(metric).unit, _SAME_SHARE * abs(figure))
