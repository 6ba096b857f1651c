"""One page over all experiments: what the thesis claims, and what our runs say to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

from torchcaps.storage import write_text

from ..plan import EXPERIMENTS, Experiment, Verdict
from .page import decide_claims, list_claims

_FILE = "claims.md"
_INTRODUCTION = (
    "Every claim is decided by a rule in the code, from the rows beside this page, never by hand. Most runs "
    "are shorter than the thesis's, with fewer seeds: each page says what they got. *Beyond* is a claim of "
    "ours that held."
)


def write_overview(results: Path) -> Path:
    """Write `results/claims.md` from the results that are there."""
    path, text = results / _FILE, render_overview(results)
    write_text(path, text)
    return path


def render_overview(results: Path) -> str:
    """The page as Markdown."""
    every = [EXPERIMENTS[label] for label in EXPERIMENTS.names()]
    claiming = [experiment for experiment in every if experiment.claims]
    begun = [experiment for experiment in claiming if (results / f"{experiment.slug}.json").is_file()]
    waiting = [f"`{experiment.label}`" for experiment in claiming if experiment not in begun]
    parts = ["# What the thesis claims, and what we found", _INTRODUCTION, _count(begun, results)]
    for chapter in dict.fromkeys(experiment.chapter for experiment in begun):
        parts.append(f"## {chapter}")
        for experiment in (one for one in begun if one.chapter == chapter):
            parts += [f"### {experiment.title}", f"[`{experiment.label}`]({experiment.slug}.md)"]
            parts.append("\n".join(list_claims(experiment, results)))
    if waiting:
        parts += ["## Without runs so far", ", ".join(waiting)]
    return "\n\n".join(parts) + "\n"


def _count(experiments: list[Experiment], results: Path) -> str:
    """How many claims of each chapter have which verdict."""
    verdicts: dict[str, Counter[str]] = {}
    for experiment in experiments:
        found = (finding.verdict for _, finding in decide_claims(experiment, results))
        verdicts.setdefault(experiment.chapter, Counter()).update(found)
    names = get_args(Verdict)
    lines = [f"| chapter | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    lines += [
        f"| {chapter} | {' | '.join(str(counts[name]) for name in names)} |"
        for chapter, counts in verdicts.items()
    ]
    return "\n".join(lines)
