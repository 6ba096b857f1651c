"""Documents and pages of results, kept current: `make pages` in a clone writes them anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torchcaps.bench import read_rows, render_bench
from torchcaps.core import markdown_table
from torchcaps.inspection import describe_model
from torchcaps.models import list_models
from torchcaps.storage import write_text
from torchcaps.zoo import render_photographs, render_weights

from ..catalogue import built_experiments
from ..demonstration import SLUG, describe_demo
from ..plan import EXPERIMENTS
from ..records import load_rows
from ..reproduction import render_reproduction, render_totals
from ..robustness.changes import render_changes
from .overview import write_overview
from .page import rows_in, write_page
from .tables import render_table


def render_models() -> str:
    """Every registered model, without the tiny ones that tests use."""
    rows = []
    for name in list_models():
        facts = describe_model(name)
        shape = "x".join(map(str, facts["input"]))
        sizes = (f"{facts['params']:,}", f"{facts['flops'] / 1e6:,.1f}", shape)
        rows.append((f"`{name}`", *sizes, facts["classes"], facts["paper"]))
    return markdown_table(("model", "parameters", "MFLOP", "input", "classes", "paper"), rows)


def render_pages(root: Path) -> str:
    """Links to the page of every experiment that has one, by chapter, for a document in `docs/`."""
    found = [each for each in built_experiments() if (root / "results" / f"{each.slug}.md").is_file()]
    parts = []
    for chapter in dict.fromkeys(experiment.chapter for experiment in found):
        parts.append(f"### {chapter[0].upper()}{chapter[1:]}\n")
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

    They are `results: label`, `results: label of metrics`, `changes: name`, `bench: file where words`,
    `demo`, `models`, `weights`, `photographs`, `pages`, `reproduction` and `reproduction totals`.
    """
    rows_of = rows_in(root / "results")
    blocks: dict[str, Callable[..., str]] = {
        "demo": lambda: f"```\n{describe_demo(load_rows(root / 'results', SLUG))}\n```\n",
        r"results: ([\w-]+)(?: of ([^>\n]+))?": partial(_render_results, root / "results"),
        r"bench: ([\w-]+)(?: where ([^>\n]+))?": partial(_render_bench, root / "benchmarks" / "results"),
        r"changes: (\w+)": partial(render_changes, rows_of),
        "reproduction": lambda: render_reproduction(rows_of),
        "reproduction totals": lambda: render_totals(rows_of) + "\n",
        "pages": lambda: render_pages(root),
        "weights": render_weights,
        "photographs": render_photographs,
        "models": render_models,
    }
    for head, render in blocks.items():
        block = re.compile(rf"(<!-- {head} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = block.sub(partial(_rewrite, render), text)
    return text


def _rewrite(render: Callable[..., str], block: re.Match[str]) -> str:
    """A block between its two marks; what the first one names is given to `render`."""
    start, *named, end = block.groups()
    return start + render(*named) + end


def _render_results(folder: Path, label: str, metrics: str | None) -> str:
    rows, wanted = load_rows(folder, label), (metrics or "").split()
    return render_table([row for row in rows if row.metric in wanted] if wanted else rows)


def _render_bench(folder: Path, name: str, words: str | None) -> str:
    return render_bench(read_rows(folder / f"{name}.json"), (words or "").split())


def renew(root: Path) -> None:
    """Write every page of results, and every block of README and docs, as the result files say today."""
    for label in EXPERIMENTS:
        if (root / "results" / f"{EXPERIMENTS[label].slug}.md").is_file():
            write_page(EXPERIMENTS[label], root / "results")
    write_overview(root / "results")
    for path in (root / "README.md", *(root / "docs").glob("*.md")):
        write_text(path, refresh(path.read_text(encoding="utf-8"), root))


if __name__ == "__main__":
    renew(Path())
