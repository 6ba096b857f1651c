"""Claims, and how the rows of results decide them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..records import Rows

Verdict = Literal["confirmed", "not confirmed", "beyond", "open"]
RowsOf = Callable[[str], Rows]  # the rows of an experiment by its label, none where it has no results


class Finding(NamedTuple):
    """What the rows say about a claim, and the numbers that decide it."""

    verdict: Verdict
    because: str


Check = Callable[[RowsOf], Finding]


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis, or one of ours that goes beyond it, and how rows decide it."""

    text: str
    check: Check


def confirm(is_so: bool, because: str) -> Finding:
    """Confirmed or not, by these numbers."""
    return Finding("confirmed" if is_so else "not confirmed", because)


def go_beyond(is_so: bool, because: str) -> Finding:
    """The verdict on a claim of ours that the thesis does not make."""
    return Finding("beyond" if is_so else "not confirmed", because)
