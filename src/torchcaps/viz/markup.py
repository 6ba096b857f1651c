"""HTML and SVG from template files, with every name escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

_WITHOUT_END = {"img"}
_NEVER_IN_SCRIPTS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@cache
def read_template(name: str, package: str = __package__) -> str:
    """The text of a file in `templates/` of a package."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


def fill(name: str, **parts: str) -> str:
    """A template with its `$words` replaced by parts, which are markup already."""
    return Template(read_template(name)).substitute(parts)


def element(tag: str, *content: str, **attributes: object) -> str:
    """One element around markup.

    Attribute values are escaped. In attribute names an underscore stands for a dash, and one at the end is
    left out, so that `class_` and `stroke_width` can be given.
    """
    values = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{values}>" if tag in _WITHOUT_END else f"<{tag}{values}>{''.join(content)}</{tag}>"


def paragraphs(text: str) -> str:
    """Text as paragraphs, which an empty line separates."""
    parts = (part.strip() for part in text.split("\n\n"))
    return "".join(element("p", escape(part)) for part in parts if part)


def row(cells: Iterable[object], tag: str = "td") -> str:
    """A row of a table."""
    return element("tr", *(element(tag, escape(str(cell))) for cell in cells))


def cards(numbers: Mapping[str, str]) -> str:
    """Numbers at the top of a page, each under its name; nothing where there are none."""
    named = [
        element("div", element("dt", escape(name)), element("dd", escape(number)))
        for name, number in numbers.items()
    ]
    return element("dl", *named, class_="numbers") if named else ""


def to_script(data: object) -> str:
    """JSON that can stand inside a script element, whatever names it holds."""
    text = json.dumps(data, allow_nan=False)
    for letter, code in _NEVER_IN_SCRIPTS.items():
        text = text.replace(letter, code)
    return text
