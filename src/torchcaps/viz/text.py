"""Names of classes and files in a form that a figure can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from unicodedata import east_asian_width

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

from torchcaps.core import UserError


def class_labels(names: Sequence[str] | None, count: int) -> list[str]:
    """The names of `count` classes as they were given, by default their numbers."""
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise UserError(f"{count} classes need {count} names, got {len(names)}")
    return list(names)


def drawable_labels(names: Sequence[str] | None, count: int, kind: str = "class") -> list[str]:
    """The names of `count` classes, or things of another kind, in letters that the font of figures has.

    Other letters, such as emoji, are left out. A class of which nothing is left, or the same as of another
    one, is called by its number.
    """
    labels = class_labels(names, count)
    drawn = [drawable(label) for label in labels]
    times = Counter(drawn)
    return [
        left if left and (left == label or times[left] == 1) else f"{kind} {number}"
        for number, (label, left) in enumerate(zip(labels, drawn, strict=True))
    ]


def drawable(text: str) -> str:
    """The text on one line, without the letters that the font of figures lacks."""
    known = _letters(findfont(FontProperties()))
    return " ".join("".join(letter for letter in text if letter.isspace() or ord(letter) in known).split())


@cache
def _letters(font: str) -> frozenset[int]:
    return frozenset(FT2Font(font).get_charmap())


def literal(text: str) -> str:
    """Text that matplotlib shows letter by letter: a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def shorten(name: str, most: int) -> str:
    """The name, or its start and an ellipsis, no wider than `most` usual letters."""
    if width_of(name) <= most:
        return name
    widths = accumulate(map(width_of, name))
    return f"{''.join(letter for letter, end in zip(name, widths, strict=True) if end < most)}…"


def width_of(text: str) -> int:
    """How many usual letters a text is as wide as: Chinese, Japanese and Korean ones count twice."""
    return sum(2 if east_asian_width(letter) in "FW" else 1 for letter in text)


def format_share(share: float) -> str:
    """A share with two decimals, or with the first that is not zero: an even one of 300 is not 0.00."""
    return f"{share:.2f}" if abs(share) >= 0.01 else f"{share:.1g}"


def join_words(words: Sequence[str]) -> str:
    """Words in a row: "1", "1 and 2", "1, 2 and 3"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
