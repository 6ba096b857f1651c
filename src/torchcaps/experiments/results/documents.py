"""Tables in documents, kept current: `python -m torchcaps.experiments.results.documents FILE...`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from torchcaps.bench import read_rows, render_bench
from torchcaps.inspection import describe_model
from torchcaps.models import list_models
from torchcaps.zoo import render_weights

from ..demonstration import SLUG, describe_demo
from ..plan import EXPERIMENTS
from ..records import load_rows
from ..reproduction import render_reproduction, render_totals
from .page import rows_in
from .tables import render_table

_BLOCK = re.compile(r"(<!-- results: ([\w-]+)(?: of ([^>\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_BENCH = re.compile(r"(<!-- bench: ([\w-]+)(?: where ([^>\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_DEMO = re.compile(r"(<!-- demo -->\n).*?(<!-- end -->)", re.DOTALL)
_REPRODUCTION = re.compile(r"(<!-- reproduction( totals)? -->\n).*?(<!-- end -->)", re.DOTALL)
_MODELS = re.compile(r"(<!-- models -->\n).*?(<!-- end -->)", re.DOTALL)
_WEIGHTS = re.compile(r"(<!-- weights -->\n).*?(<!-- end -->)", re.DOTALL)
_PAGES = re.compile(r"(<!-- pages -->\n).*?(<!-- end -->)", re.DOTALL)

_NO_CHAPTER = "all families"


def render_models() -> str:
    """Every registered model, without the tiny ones that tests use."""
    lines = [
        "| model | parameters | MFLOP | input | classes | paper |\n| --- | --- | --- | --- | --- | --- |\n"
    ]
    for name in list_models():
        facts = describe_model(name)
        shape = "x".join(map(str, facts["input"]))
        cells = (f"`{name}`", f"{facts['params']:,}", f"{facts['flops'] / 1e6:,.1f}", shape)
        lines.append(f"| {' | '.join(cells)} | {facts['classes']} | {facts['paper']} |\n")
    return "".join(lines)


def render_pages(root: Path) -> str:
    """Links to the page of every experiment that has one, by chapter, for a document in `docs/`."""
    every = [EXPERIMENTS[label] for label in EXPERIMENTS.names()]
    found = [experiment for experiment in every if (root / "results" / f"{experiment.slug}.md").is_file()]
    parts = []
    for chapter in dict.fromkeys(experiment.chapter for experiment in found):
        title = _NO_CHAPTER if chapter == "none" else chapter
        parts.append(f"### {title[0].upper()}{title[1:]}\n")
        parts.append(
            "".join(
                f"- [{experiment.title}](../results/{experiment.slug}.md)\n"
                for experiment in found
                if experiment.chapter == chapter
            )
        )
    return "\n".join(parts)


def refresh(text: str, root: Path) -> str:
    """The document with its blocks written anew.

    They are `results: label`, `results: label of metrics`, `bench: file where words`, `demo`, `models`,
    `weights`, `pages`, `reproduction` and `reproduction totals`.
    """

    def results(match: re.Match[str]) -> str:
        rows = load_rows(root / "results", match[2])
        wanted = (match[3] or "").split()
        chosen = [row for row in rows if row.metric in wanted] if wanted else rows
        return match[1] + render_table(chosen) + match[4]

    def bench(match: re.Match[str]) -> str:
        rows = read_rows(root / "benchmarks" / "results" / f"{match[2]}.json")
        return match[1] + render_bench(rows, (match[3] or "").split()) + match[4]

    def demo(match: re.Match[str]) -> str:
        return f"{match[1]}```\n{describe_demo(load_rows(root / 'results', SLUG))}\n```\n{match[2]}"

    text = _DEMO.sub(demo, text)

    def reproduction(match: re.Match[str]) -> str:
        rows_of = rows_in(root / "results")
        found = render_totals(rows_of) + "\n" if match[2] else render_reproduction(rows_of)
        return match[1] + found + match[3]

    text = _BENCH.sub(bench, _BLOCK.sub(results, text))
    text = _REPRODUCTION.sub(reproduction, text)
    text = _PAGES.sub(lambda match: match[1] + render_pages(root) + match[2], text)
    text = _WEIGHTS.sub(lambda match: match[1] + render_weights() + match[2], text)
    return _MODELS.sub(lambda match: match[1] + render_models() + match[2], text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(refresh(path.read_text(encoding="utf-8"), Path()), encoding="utf-8")
