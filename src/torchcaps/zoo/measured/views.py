"""What `torchcaps uav eval` found of a network of maps, as numbers and in the words of its card."""

from __future__ import annotations

from dataclasses import dataclass

from torchcaps.core import Plain, UserError

from .printed import reading

VIEWS = "views.json"  # in the folder of a network: what `torchcaps uav eval MAP... --run NAME --out` wrote
_OFFSET = 35.0  # metres, where the command is not told


@dataclass(frozen=True, kw_only=True)
class MeasuredViews:
    """How a network fared on views that a command draws again.

    Attributes:
        weights: SHA-256 of the weights that were measured.
        metrics: The leading one first, as an entry has them.
        views: How many there were, and of how many places.
        options: What the command is given beside the name of the network, the files of the maps first.
    """

    weights: str
    metrics: dict[str, float]
    views: tuple[int, int]
    options: tuple[str, str]

    @classmethod
    def from_plain(cls, found: Plain) -> MeasuredViews:
        """From what the command wrote."""
        with reading(VIEWS, printed_by="torchcaps uav eval --out wrote of the maps of one place"):
            (ground,), plan = found["maps"], found["plan"]
            aside = "" if plan["offset"] == _OFFSET else f" --offset {plan['offset']:g}"
            return cls(
                weights=str(found["weights"]),
                metrics={f"test_{key}": float(found[key]) for key in ("recall_at_1", "loss")},
                views=(int(found["images"]), int(found["places"])),
                options=(
                    " ".join(f"{date}.tif" for date in ground["dates"]),
                    f"--places {plan['places']} --views {plan['views']}{aside}",
                ),
            )

    def metrics_of(self, weights: str) -> dict[str, float]:
        """The metrics, which must be those of weights with this checksum."""
        if self.weights != weights:
            raise UserError(f"{VIEWS} is of other weights than those beside it; measure these")
        return self.metrics

    def words(self, name: str) -> str:
        """Which views they were, and the command that measures them again."""
        count, places = self.views
        maps, plan = self.options
        return (
            f"of {count:,} views of {places} places and of the weights as they are stored; to measure it "
            f"again: `torchcaps uav eval {maps} --run {name} {plan}` (`{VIEWS}` beside this card)"
        )
