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
MISSING = Finding("open", "runs are missing")


def on_rows(label: str, rule: Callable[[Rows], Finding]) -> Check:
    """A check that looks at the rows of one experiment alone."""
    return lambda rows_of: rule(rows_of(label))


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis, or one of ours that goes beyond it, and the rule by which rows decide it."""

    text: str
    rule: Check
    is_ours: bool = False

    def check(self, rows_of: RowsOf) -> Finding:
        """What the rows say; where they confirm a claim of ours, it goes beyond the thesis."""
        finding = self.rule(rows_of)
        if self.is_ours and finding.verdict == "confirmed":
            return finding._replace(verdict="beyond")
        return finding


def our_claim(text: str, rule: Check) -> Claim:
    """A claim that the thesis does not make."""
    return Claim(text, rule, is_ours=True)
