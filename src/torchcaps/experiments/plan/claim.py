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
