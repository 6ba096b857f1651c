"""How a network fares on drawn photographs of digits, for its card and for tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchcaps.core import Plain

from .printed import reading

PHOTOGRAPHS = (
    "photographs.json"  # in a run folder: what `torchcaps eval RUN --suite photographs --json` printed
)
_PLAIN, _MIXED, _EMPTY = "page", "all at once", "no digit"
_METRICS = ("read_right", "refused", "read_wrong")
Condition = tuple[str, str]  # group, and what it is


@dataclass(frozen=True)
class MeasuredPhotographs:
    """Shares of photographs under each condition, and how they were measured.

    Attributes:
        shares: By condition and metric; sheets without a digit have "refused" alone.
        limit: How many digits were asked for under each condition; None: as many as the suite takes.
        made: The commit and the device.
    """

    shares: Mapping[Condition, Mapping[str, float]]
    limit: int | None
    made: tuple[str, str]

    @classmethod
    def from_plain(cls, found: Plain) -> MeasuredPhotographs:
        """From what the suite printed of one run."""
        with reading(PHOTOGRAPHS, printed_by="torchcaps eval RUN --suite photographs --json prints"):
            (rows,) = found["runs"].values()
            shares = {
                (str(row["group"]), str(row["condition"])): {
                    name: float(row[name]) for name in (_METRICS[1:2] if row["group"] == _EMPTY else _METRICS)
                }
                for row in rows
            }
            if not {_PLAIN, _MIXED, _EMPTY} <= {group for group, _ in shares}:
                raise ValueError("a group is missing")
            return cls(shares, found["limit"], (str(found["commit"]), str(found["device"])))

    def of(self, group: str) -> dict[str, Mapping[str, float]]:
        """The shares of a group, by condition."""
        return {name: shares for (own, name), shares in self.shares.items() if own == group}

    def __str__(self) -> str:
        single = {
            key: each["read_right"] for key, each in self.shares.items() if key[0] not in (_MIXED, _EMPTY)
        }
        (worst_group, worst), lowest = min(single.items(), key=lambda pair: pair[1])
        (mixed,), plain = self.of(_MIXED).values(), next(iter(self.of(_PLAIN).values()))
        empty: dict[float, list[str]] = {}
        for name, each in self.of(_EMPTY).items():
            empty.setdefault(each["refused"], []).append(name)
        count = "" if self.limit is None else f"{self.limit:,} "
        return (
            f"Photographs that were drawn, not taken, of {count}test digits "
            f"(`torchcaps eval NAME --suite photographs`): {plain['read_right']:.1%} are read right on a "
            f"plain sheet, {lowest:.1%} under the hardest single change ({worst_group}: {worst}), "
            f"{mixed['read_right']:.1%} under several at once; of sheets without a digit, "
            + ", ".join(f"{share:.1%} are refused ({', '.join(names)})" for share, names in empty.items())
            + "."
        )
