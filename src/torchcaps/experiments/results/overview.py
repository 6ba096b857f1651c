"""One page over all experiments: what the thesis claims, and what our runs show."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

from torchcaps.core import markdown_table
from torchcaps.storage import write_text

from ..catalogue import built_experiments
from ..plan import Experiment, RowsOf, Verdict
from .page import list_claims, rows_in

_INTRODUCTION = (
    "Every claim is decided by a rule in the code, from the rows beside this page. Most runs are shorter "
    "than the thesis's, with fewer seeds: each page states their protocol. *Beyond* is a claim of ours that "
    "was confirmed."
)


def write_overview(results: Path) -> None:
    """Write `results/claims.md` from the results that are there."""
    write_text(results / "claims.md", render_overview(rows_in(results)))


def render_overview(rows_of: RowsOf) -> str:
    """The page as Markdown."""
    claiming = [experiment for experiment in built_experiments() if experiment.claims]
    begun = [experiment for experiment in claiming if rows_of(experiment.label)]
    waiting = [f"`{experiment.label}`" for experiment in claiming if experiment not in begun]
    parts = ["# What the thesis claims, and what we found", _INTRODUCTION, _count(begun, rows_of)]
    for chapter in dict.fromkeys(experiment.chapter for experiment in begun):
        parts.append(f"## {chapter}")
        for experiment in (one for one in begun if one.chapter == chapter):
            parts += [f"### {experiment.title}", f"[`{experiment.label}`]({experiment.slug}.md)"]
            parts.append("\n".join(list_claims(experiment, rows_of)))
    if waiting:
        parts += ["## Without runs so far", ", ".join(waiting)]
    return "\n\n".join(parts) + "\n"


def _count(experiments: list[Experiment], rows_of: RowsOf) -> str:
    """How many claims of each chapter have which verdict."""
    verdicts: dict[str, Counter[str]] = {}
    for experiment in experiments:
        found = (claim.check(rows_of).verdict for claim in experiment.claims)
        verdicts.setdefault(experiment.chapter, Counter()).update(found)
    names = get_args(Verdict)
    rows = [(chapter, *(counts[name] for name in names)) for chapter, counts in verdicts.items()]
    return markdown_table(("chapter", *names), rows).rstrip("\n")
