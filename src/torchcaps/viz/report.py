"""A page of results in one HTML file that needs nothing else."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from torchcaps.core.errors import UserError
from torchcaps.storage import write_text

from .style import pixel_size, to_png

_CSS = """
:root { color-scheme: light dark; --page: #f5f6fb; --card: #ffffff; --ink: #1c2045; --muted: #5d6388;
  --line: #dde1ee; --accent: #c9540e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12142a; --card: #1b1e3a; --ink: #eceefb; --muted: #a5abd0; --line: #30355c;
    --accent: #ff9a5c; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.6;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: clamp(1.25rem, 4vw, 3.5rem) clamp(1rem, 4vw, 2rem) 3rem; }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.6rem); line-height: 1.15; letter-spacing: -0.02em; text-wrap: balance;
  margin: 0 0 0.5rem; }
h2 { font-size: 1.3rem; letter-spacing: -0.01em; margin: 0 0 0.35rem; }
p { margin: 0 0 0.6rem; max-width: 44rem; color: var(--muted); }
header p { font-size: 1.1rem; }
a { color: var(--accent); }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.75rem;
  margin: 1.6rem 0 0; }
.numbers div { background: var(--card); border: 1px solid var(--line); border-radius: 0.8rem;
  padding: 0.9rem 1.1rem; }
.numbers dt { color: var(--muted); font-size: 0.85rem; }
.numbers dd { margin: 0.1rem 0 0; font-size: 1.5rem; font-weight: 650; font-variant-numeric: tabular-nums;
  letter-spacing: -0.01em; overflow-wrap: anywhere; }
.numbers div:first-child dd { color: var(--accent); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 1rem; margin-top: 1.4rem;
  padding: clamp(1rem, 3vw, 1.8rem); }
img { display: block; max-width: 100%; height: auto; margin: 0.9rem auto 0; background: #fff;
  border-radius: 0.6rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin-top: 0.8rem; font-size: 0.95rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.4rem 1.4rem 0.4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; }
@media print { body { background: none; } section { break-inside: avoid; } }
"""


class Report:
    """Sections of text, figures and tables, saved as one page.

    All text is shown as given: markup in it is not interpreted. An empty line starts a new paragraph.
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._numbers: dict[str, str] = {}
        self._sections: list[str] = []

    def numbers(self, values: Mapping[str, object]) -> None:
        """Add key numbers to the top of the page; the first of all is emphasised."""
        self._numbers |= {name: str(value) for name, value in values.items()}

    def section(
        self,
        heading: str,
        text: str = "",
        figure: Figure | None = None,
        *,
        alt: str | None = None,
        table: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Add a section.

        Args:
            heading: Above all else.
            text: What there is to see.
            figure: Drawn at twice its screen size, so that it stays sharp.
            alt: What the figure shows, for those who cannot see it; by default the heading.
            table: Rows with the same keys, which head the columns.
        """
        parts = [f"<h2>{escape(heading)}</h2>", _paragraphs(text)]
        if figure is not None:
            parts.append(_image(figure, alt or heading))
        if table:
            parts.append(_table(table))
        self._sections.append(f"<section>\n{''.join(parts)}\n</section>")

    def insert(self, heading: str, text: str, markup: str) -> None:
        """Add a section whose body is HTML that this library made, such as an interactive tree."""
        self._sections.append(f"<section>\n<h2>{escape(heading)}</h2>{_paragraphs(text)}{markup}\n</section>")

    def to_html(self) -> str:
        """The whole page."""
        numbers = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in self._numbers.items()
        )
        return "\n".join(
            [
                '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{escape(self.title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<main>",
                f"<header><h1>{escape(self.title)}</h1>{_paragraphs(self.subtitle)}</header>",
                f'<dl class="numbers">{numbers}</dl>' if numbers else "",
                *self._sections,
                "</main>\n</body>\n</html>\n",
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; a reader never meets half of it."""
        target = Path(path)
        write_text(target, self.to_html())
        return target


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip())


def _image(figure: Figure, alt: str) -> str:
    width, height = (round(side) for side in pixel_size(figure))
    data = b64encode(to_png(figure)).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alt)}" width="{width}" height="{height}">'


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    columns = list(rows[0])
    if any(list(row) != columns for row in rows):
        raise UserError(f"all rows of a table need the columns {columns}")
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(row[name]))}</td>" for name in columns) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
