"""A page of results in one HTML file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from torchcaps.core import UserError
from torchcaps.storage import write_text

from .markup import cards, element, fill, paragraphs, read_template, row
from .pictures import png_uri
from .style import pixel_size, to_png

_NARROW = 640  # pixels; wider figures scroll on a telephone, where their labels would be too small to read


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
        body = "" if figure is None else _image(figure, alt or heading)
        self.insert(heading, text, body + (_table(table) if table else ""))

    def insert(self, heading: str, text: str, markup: str) -> None:
        """Add a section whose body is HTML that this library made, such as an interactive tree."""
        self._sections.append(element("section", element("h2", escape(heading)), paragraphs(text), markup))

    def arrange_around(self) -> None:
        """Set the middle one of the last three sections beside the other two, on a screen that is wide."""
        self._sections[-3:] = [element("div", *self._sections[-3:], class_="around")]

    def to_html(self) -> str:
        """The whole page."""
        return fill(
            "report.html",
            title=escape(self.title),
            style=read_template("report.css"),
            subtitle=paragraphs(self.subtitle),
            numbers=cards(self._numbers),
            sections="\n".join(self._sections),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page at once, so that no reader sees a part of it."""
        target = Path(path)
        write_text(target, self.to_html())
        return target


def _image(figure: Figure, alt: str) -> str:
    width, height = (round(side) for side in pixel_size(figure))
    image = element("img", src=png_uri(to_png(figure)), alt=alt, width=width, height=height)
    return element("div", image, class_="scroll picture") if width > _NARROW else image


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    columns = list(rows[0])
    if any(list(each) != columns for each in rows):
        raise UserError(f"all rows of a table need the columns {columns}")
    head = element("thead", row(columns, "th"))
    body = element("tbody", *(row(each.values()) for each in rows))
    return element("div", element("table", head, body), class_="scroll")
