"""A page for each table and figure: thesis and ours side by side, and a verdict on every claim."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import cache
from pathlib import Path
from typing import Final, Literal

from torchcaps.core import Number, counted, metric_of
from torchcaps.storage import write_text

from ..plan import THESIS_SEEDS, Claim, Experiment, RowsOf, Verdict, excess, mean_of, slug_of
from ..records import Row, Rows, RunFacts, load_rows, metric_words
from .tables import render_table

_LEGEND = (
    "How these verdicts come about. A figure of the thesis has a tolerance: half a point, half a bit, five "
    "points of sparsity, else a twentieth. It is *confirmed* where all of the 95 % interval of our "
    "difference from it lies within the tolerance. It is *not confirmed*, or ours is *beyond* it, where all"
    " of the interval lies outside. All else is *open*, always with a single seed. The thesis's figure is "
    "taken for a mean of five seeds that scatter as ours do. A shorter protocol than the thesis's can "
    "confirm a figure, or go beyond one of which more is better; it leaves any other difference open. The "
    "thesis's deviations of an entropy are over classes, ours over seeds."
)
_COUNTS = (
    "Decided by one run, because no seed and no training changes them: {}. Such a count is confirmed where "
    "it rounds to the printed figure, and else not confirmed."
)
FigureVerdict = Verdict | Literal["other data"]
OTHER_DATA: Final = "other data"
_SAME_SPARSITY, _SAME_SHARE = 5.0, 0.05
_SAME_UNITS = {"%": 0.5, "bits": 0.5}

_MOST_NETWORKS = 20  # on one page; a grid has one for each of its points


def rows_in(results: Path) -> RowsOf:
    """The rows in a folder of results by the label of their experiment; each file is read once."""

    @cache
    def rows_of(label: str) -> Rows:
        slug = slug_of(label)
        return load_rows(results, slug) if (results / f"{slug}.json").is_file() else []

    return rows_of


def write_page(experiment: Experiment, results: Path) -> None:
    """Write `results/<label>.md` from the rows of the experiment."""
    write_text(results / f"{experiment.slug}.md", render_page(experiment, rows_in(results)))


def render_page(experiment: Experiment, rows_of: RowsOf) -> str:
    """The page as Markdown."""
    rows = rows_of(experiment.label)
    claims = list_claims(experiment, rows_of)
    parts = [
        f"# {experiment.title}",
        f'`{experiment.label}`, chapter "{experiment.chapter}"',
        f"![{experiment.title}]({experiment.slug}.png)" if experiment.draw is not None else "",
        "\n".join(["## Claims", "", *claims]) if claims else "",
        "## Thesis and ours",
        render_table(rows).rstrip("\n"),
        _verdicts(experiment, rows),
        "## Protocol and deviations",
        _protocol(experiment, rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def list_claims(experiment: Experiment, rows_of: RowsOf) -> list[str]:
    """The claims of an experiment with their verdicts, as lines, after the runs that decide them."""
    if not experiment.claims:
        return []
    rows = rows_of(experiment.label)
    budgets = sorted({f"{row.budget} budget" for row in rows})
    seeds = min(row.seeds for row in rows)
    least = f"with at least {counted(seeds, 'seed')} of a setting"
    decided = f"Decided by runs of the {' and '.join(budgets)}, {least}."
    return [decided, "", *(decide_claim(claim, rows_of) for claim in experiment.claims)]


def decide_claim(claim: Claim, rows_of: RowsOf) -> str:
    """A claim with its verdict, as a line."""
    verdict, because = claim.check(rows_of)
    return f"- {claim.text} **{verdict}**: {because}."


def _verdicts(experiment: Experiment, rows: Rows) -> str:
    """A line for each row that the thesis has a figure for."""
    lines = [
        f"- {row.setting}, {metric_words(row.metric)}: **{verdict}**"
        for row, verdict in judged_figures(experiment, rows)
        if verdict != OTHER_DATA
    ]
    others = sorted({metric_words(row.metric) for row in rows if is_of_other_data(experiment, row)})
    not_judged = f"The thesis's figures are of other data than ours, and not judged: {'; '.join(others)}."
    counts = _COUNTS.format("; ".join(map(metric_words, experiment.counted))) if experiment.counted else ""
    legend = " ".join(filter(None, (_LEGEND, counts)))
    parts = ["\n".join(lines), legend if lines else "", not_judged if others else ""]
    return "\n\n".join(part for part in parts if part)


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


def _protocol(experiment: Experiment, rows: Rows) -> str:
    """Protocols and devices of the runs, and where they differ from the thesis's."""
    settings: dict[str, set[str]] = {}
    for row in rows:
        settings.setdefault(row.protocol, set()).add(row.setting)
    runs = {  # one run stands behind several rows
        (row.setting, run.facts.seed): run.facts for row in rows for run in row.runs
    }
    seconds = sum(facts.seconds for facts in runs.values())
    lines = [f"- {protocol}: {counted(len(names), 'setting')}" for protocol, names in settings.items()]
    lines += _networks(rows)
    lines.append(
        f"- {counted(len(runs), 'run')}, {_say_time(seconds)} of training in all, on "
        f"{_describe_devices(runs.values())}"
    )
    return "\n".join([*lines, *(f"- {sentence}" for sentence in experiment.deviations)])


def _networks(rows: Rows) -> list[str]:
    """Which network the runs of each setting trained, by the recipes in their results."""
    settings: dict[str, dict[str, None]] = {}
    for row in rows:
        for protocol in row.protocols:
            if protocol.model:
                settings.setdefault(protocol.model, {})[row.setting] = None
    if len(settings) > _MOST_NETWORKS:
        return [f"- {len(settings)} networks; their settings are named by what they differ in"]
    return [f"- `{model}`: {'; '.join(names)}" for model, names in settings.items()]


def _say_time(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} hours"
    return "less than a minute" if seconds < 60 else counted(round(seconds / 60), "minute")


def _describe_devices(runs: Iterable[RunFacts]) -> str:
    """Devices and precisions, each with how many runs shared it where that is known."""
    shared: dict[str, set[int | None]] = {}
    for facts in runs:
        shared.setdefault(f"{facts.device}, precision {facts.precision}", set()).add(facts.concurrency)
    return "; ".join(device + _say_shared(counts) for device, counts in sorted(shared.items()))


def _say_shared(counts: Set[int | None]) -> str:
    known = sorted(count for count in counts if count is not None)
    if not known:
        return ""
    span = f"{known[0]} to " if known[0] < known[-1] else ""
    limit = " where that is known" if None in counts else ""
    return f", {span}{counted(known[-1], 'run')} at a time{limit}"
