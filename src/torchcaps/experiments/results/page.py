"""A page for each table and figure: thesis and ours side by side, and a verdict on every claim."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import cache
from pathlib import Path

from torchcaps.core import counted
from torchcaps.storage import write_text

from ..plan import Claim, Experiment, RowsOf, slug_of
from ..records import Rows, RunFacts, load_rows, metric_words
from .judge import OTHER_DATA, is_of_other_data, judged_figures
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
    has_picture = (results / f"{experiment.slug}.png").is_file()
    page = render_page(experiment, rows_in(results), has_picture=has_picture)
    write_text(results / f"{experiment.slug}.md", page)


def render_page(experiment: Experiment, rows_of: RowsOf, *, has_picture: bool = True) -> str:
    """The page as Markdown; without its picture where the runs that it shows are missing."""
    rows = rows_of(experiment.label)
    claims = list_claims(experiment, rows_of)
    parts = [
        f"# {experiment.title}",
        f'`{experiment.label}`, chapter "{experiment.chapter}"',
        f"![{experiment.title}]({experiment.slug}.png)" if has_picture and experiment.draw else "",
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
        shared.setdefault(f"{facts.devices}, precision {facts.precision}", set()).add(facts.concurrency)
    return "; ".join(device + _say_shared(counts) for device, counts in sorted(shared.items()))


def _say_shared(counts: Set[int | None]) -> str:
    known = sorted(count for count in counts if count is not None)
    if not known:
        return ""
    span = f"{known[0]} to " if known[0] < known[-1] else ""
    limit = " where that is known" if None in counts else ""
    return f", {span}{counted(known[-1], 'run')} at a time{limit}"
