"""Tables in documents, from the files in `results/`: `python -m torchcaps.experiments.tables FILE...`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torchcaps.core.errors import MissingDataError

_BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = "| setting | metric | thesis | ours | seeds | protocol |\n| --- | --- | --- | --- | --- | --- |\n"


def load_results(folder: Path, label: str) -> list[dict[str, Any]]:
    """Rows of one table or figure of the thesis, by its label with ':' and spaces as '-'."""
    path = folder / f"{label}.json"
    if not path.is_file():
        raise MissingDataError(f"no results at {path}")
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


def render_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table, thesis and ours side by side."""
    lines = []
    for row in rows:
        spread = f" ± {row['spread']:.2f}" if row["spread"] is not None else ""
        ours = "not yet" if row["ours"] is None else f"{row['ours']:.2f}{spread}"
        thesis = "-" if row["thesis"] is None else f"{row['thesis']:.2f}"
        cells = (row["setting"], row["metric"], thesis, ours, row["seeds"], row["protocol"])
        lines.append(f"| {' | '.join(map(str, cells))} |\n")
    return _HEAD + "".join(lines)


def refresh(text: str, folder: Path) -> str:
    """The document with every `<!-- results: label -->` block written anew."""

    def block(match: re.Match[str]) -> str:
        return match[1] + render_table(load_results(folder, match[2])) + match[3]

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(refresh(path.read_text(), Path("results")))
