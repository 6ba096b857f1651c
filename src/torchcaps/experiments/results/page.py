"""A page for each table and figure: thesis and ours side by side, and a verdict on every claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcaps.core.errors import MissingDataError
from torchcaps.storage import write_text

from ..plan import EXPERIMENTS, Claim, Experiment, Finding, Rows
from .tables import load_results, render_table

_LEGEND = (
    "A figure of the thesis is confirmed where ours differs by at most two deviations over seeds, and ours "
    "is beyond it where an accuracy is higher by more. A protocol shorter than that of the thesis, or a "
    "single seed, leaves a difference open."
)


def write_page(experiment: Experiment, results: Path) -> Path:
    """Write `results/<label>.md` from the rows of the experiment."""
    path = results / f"{experiment.slug}.md"
    text = render_page(experiment, results)
    write_text(path, text)
    return path


def render_page(experiment: Experiment, results: Path) -> str:
    """The page as Markdown."""
    rows = load_results(results, experiment.slug)
    picture = f"![{experiment.title}]({experiment.slug}.png)" if experiment.draw is not None else ""
    parts = [
        f"# {experiment.title}",
        f'`{experiment.label}`, chapter "{experiment.chapter}"',
        picture,
        _claims(experiment, results),
        "## Thesis and ours",
        render_table(rows).rstrip("\n"),
        _verdicts(rows),
        "## Protocol and deviations",
        _protocol(experiment, rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def decide_claims(experiment: Experiment, results: Path) -> list[tuple[Claim, Finding]]:
    """What the rows in `results` say about each claim of an experiment."""

    def rows_of(label: str) -> Rows:
        try:
            return load_results(results, EXPERIMENTS[label].slug)
        except MissingDataError:
            return []

    return [(claim, claim.check(rows_of)) for claim in experiment.claims]


def list_claims(experiment: Experiment, results: Path) -> list[str]:
    """The claims of an experiment with their verdicts, as lines, and first what these rest on."""
    found = decide_claims(experiment, results)
    if not found:
        return []
    rows = load_results(results, experiment.slug)
    budgets = sorted({row["protocol"].partition(",")[0] for row in rows})
    seeds = min(row["seeds"] for row in rows)
    decided = f"Decided by runs of the {' and '.join(budgets)}, at least {seeds} to a setting."
    return [
        decided,
        "",
        *(f"- {claim.text} **{verdict}**: {because}." for claim, (verdict, because) in found),
    ]


def _claims(experiment: Experiment, results: Path) -> str:
    lines = list_claims(experiment, results)
    return "\n".join(["## Claims", "", *lines]) if lines else ""


def _verdicts(rows: Rows) -> str:
    """A line for each row that the thesis has a figure for."""
    lines = [
        f"- {row['setting']}, {row['metric']}: **{judge(row)}**" for row in rows if row["thesis"] is not None
    ]
    return "\n".join([*lines, "", _LEGEND]) if lines else ""


def judge(row: dict[str, Any]) -> str:
    """How a row stands to the figure that the thesis prints."""
    if row["ours"] is None:
        return "open"
    more, reach = row["ours"] - row["thesis"], 2 * (row["spread"] or 0.0)
    if abs(more) <= reach:
        return "confirmed"
    if row["metric"].endswith("accuracy") and more > 0 and row["seeds"] > 1:
        return "beyond"
    return "not confirmed" if "full budget" in row["protocol"] and row["seeds"] > 1 else "open"


def _protocol(experiment: Experiment, rows: Rows) -> str:
    """What the runs got, where they were made and where they differ from the thesis's."""
    settings: dict[str, list[str]] = {}
    for row in rows:
        names = settings.setdefault(row["protocol"], [])
        if row["setting"] not in names:
            names.append(row["setting"])
    runs = {
        (row["setting"], run["seed"]): run for row in rows for run in row["runs"]
    }  # one run stands behind several rows
    devices = sorted({f"{run['device']}, precision {run['precision']}" for run in runs.values()})
    hours = sum(run["seconds"] for run in runs.values()) / 3600
    lines = [f"- {protocol}: {len(names)} settings" for protocol, names in settings.items()]
    lines.append(f"- {len(runs)} runs, {hours:.1f} hours of training in all, on {'; '.join(devices)}")
    return "\n".join([*lines, *(f"- {sentence}" for sentence in experiment.deviations)])
