"""The thesis and ours side by side, chapter by chapter, over all tables and figures that report a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from torchcaps.core import markdown_table

from .catalogue import LABELS, WITHOUT_DATA, WITHOUT_RUNS
from .plan import EXPERIMENTS, Experiment, RowsOf, Verdict
from .records import Row, metric_heading
from .results import OTHER_DATA, FigureVerdict, decide_claim, figures_of, judged_figures

_COLUMNS = ("setting", "metric", "thesis", "ours", "seeds", "budget", "verdict")
_VERDICTS = get_args(Verdict)


def render_reproduction(rows_of: RowsOf) -> str:
    """Every label of the thesis with figures, claims and verdicts, or the reason why it has no runs."""
    parts = [render_totals(rows_of)]
    for chapter in dict.fromkeys(LABELS.values()):
        parts.append(f"## {chapter}")
        for label in (label for label, of in LABELS.items() if of == chapter):
            parts += _of_label(label, rows_of)
    return "\n\n".join(parts) + "\n"


def render_totals(rows_of: RowsOf) -> str:
    """How many labels have runs, and how many figures and claims of the thesis have which verdict."""
    built = [EXPERIMENTS[label] for label in LABELS if label in EXPERIMENTS]
    begun = [experiment for experiment in built if rows_of(experiment.label)]
    judged = [(experiment, *each) for experiment in begun for each in _figures(experiment, rows_of)]
    figures: Counter[str] = Counter(verdict for _, _, verdict in judged)
    counts = sum(verdict == "confirmed" and _is_count(experiment, row) for experiment, row, verdict in judged)
    others = figures.pop(OTHER_DATA, 0)
    apart = f"; {others} more are of other data than the thesis's, and not judged" if others else ""
    claims: Counter[str] = Counter(
        claim.check(rows_of).verdict for experiment in begun for claim in experiment.claims
    )
    return (
        f"Of {len(LABELS)} tables and figures of the thesis that report a result, {len(begun)} have runs "
        f"here. {figures.total()} of our numbers stand beside a printed figure: {_count(figures)}{apart}. "
        f"{counts} of the confirmed ones are counts that no training changes, such as parameters. "
        f"{claims.total()} claims are checked: {_count(claims)}. Open means too few seeds, or less than the "
        "thesis's protocol."
    )


def _is_count(experiment: Experiment, row: Row) -> bool:
    """Whether a number follows from the network alone: its metric is a count, or no seed changes it."""
    is_same = row.seeds > 1 and len({run.value for run in row.runs}) == 1
    return is_same or row.metric in experiment.counted


def _count(verdicts: Counter[str]) -> str:
    words = [f"{verdicts[name]} {name}" for name in _VERDICTS if name != "beyond" or verdicts[name]]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _of_label(label: str, rows_of: RowsOf) -> Iterator[str]:
    if label not in EXPERIMENTS:
        yield f"### `{label}`"
        yield f"No runs: {WITHOUT_RUNS[label]}."
        return
    experiment = EXPERIMENTS[label]
    yield f"### {experiment.title}"
    if not rows_of(label):
        why = f" ({WITHOUT_DATA[label]})" if label in WITHOUT_DATA else ""
        yield f"`{label}`. No runs so far{why}: `torchcaps reproduce {label}` makes them."
        return
    yield f"[`{label}`](../results/{experiment.slug}.md)"
    figures = [_cells(row, verdict) for row, verdict in _figures(experiment, rows_of)]
    if figures:
        yield markdown_table(_COLUMNS, figures).rstrip("\n")
    missing = _missing(experiment, rows_of)
    if missing:
        yield f"Without runs so far: {'; '.join(missing)}."
    if experiment.claims:
        yield "\n".join(decide_claim(claim, rows_of) for claim in experiment.claims)


def _figures(experiment: Experiment, rows_of: RowsOf) -> list[tuple[Row, FigureVerdict]]:
    return judged_figures(experiment, rows_of(experiment.label))


def _cells(row: Row, verdict: FigureVerdict) -> tuple[object, ...]:
    return row.setting, metric_heading(row.metric), *figures_of(row), row.seeds, row.budget or "", verdict


def _missing(experiment: Experiment, rows_of: RowsOf) -> list[str]:
    """The settings that the thesis has figures for and that have no row."""
    made = {row.setting for row in rows_of(experiment.label)}
    return [setting.name for setting in experiment.settings if setting.thesis and setting.name not in made]
