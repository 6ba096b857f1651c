"""How a network fares on turned test images, and how often it notices that they are turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core import Plain
from torchcaps.storage import read_json

from .printed import reading

TURNS = "turns.json"  # in a run folder: what `torchcaps eval RUN --suite turns --json` printed
UPRIGHT, *TURNED = ANGLES = ("0°", "90°", "180°", "270°")
_METRICS = ("accuracy", "hinted", "hinted_back")
_MOST_FALSE, _LEAST_TRUE = 0.01, 0.5  # shares of upright and of turned images that get a hint


@dataclass(frozen=True)
class MeasuredTurns:
    """How a network fares on turned test images, and how often it notices.

    Attributes:
        shares: By angle and metric.
        is_whole: Whether all test images were used.
    """

    shares: Mapping[str, Mapping[str, float]]
    is_whole: bool

    @classmethod
    def from_plain(cls, found: Plain) -> MeasuredTurns:
        """From what the suite printed of one run."""
        with reading(TURNS, printed_by="torchcaps eval RUN --suite turns --json prints"):
            (rows,) = found["runs"].values()
            by_angle = {row["condition"]: row for row in rows}
            shares = {angle: {key: float(by_angle[angle][key]) for key in _METRICS} for angle in TURNED}
            shares[UPRIGHT] = {"hinted": float(by_angle[UPRIGHT]["hinted"])}
            return cls(shares, found["limit"] is None)

    @property
    def is_trusted(self) -> bool:
        """Whether hints are right often enough to be given: for most turned images and few upright ones."""
        noticed = sum(self.shares[angle]["hinted"] for angle in TURNED) / len(TURNED)
        return self.is_whole and self.shares[UPRIGHT]["hinted"] < _MOST_FALSE and noticed > _LEAST_TRUE

    def __str__(self) -> str:
        accuracy, hinted, back = (
            ", ".join(f"{self.shares[angle][key]:.1%}" for angle in TURNED) for key in _METRICS
        )
        false = f"{self.shares[UPRIGHT]['hinted']:.2%} of upright ones"
        said = (
            f"`torchcaps predict` says of {hinted} of these that they may be turned, with the right turn for "
            f"{back}, and of {false}"
            if self.is_trusted
            else f"`torchcaps predict` does not say that an image may be turned: it would say so of {false}"
        )
        return (
            "Test images turned by 90°, 180° and 270° (`torchcaps eval NAME --suite turns`): accuracy "
            f"{accuracy}; {said}."
        )


def may_hint(folder: Path) -> bool:
    """Whether it was measured of the run in a folder that its hints are right often enough."""
    path = folder / TURNS
    return path.is_file() and MeasuredTurns.from_plain(read_json(path)).is_trusted
