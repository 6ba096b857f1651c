"""The settings of the REM chapter: a network without REM and with it, and how its trees are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..plan import Changes, Setting, join_changes
from ..records import Row

PLAIN, REM = "without REM", "with REM"


@dataclass(frozen=True, kw_only=True)
class TreeSetting(Setting):
    """A network whose parse trees are counted.

    Attributes:
        levels: Of the quantized couplings, for all routed layers or for each, 0 for one that is not
            quantized; by default those of the thesis.
        epoch: Its weights after this epoch, counted from one, are looked at; None for the best ones.
    """

    levels: int | tuple[int, ...] = 11
    epoch: int | None = None


class Schedule(NamedTuple):
    """Epochs, decay and pruning strength of a quick budget.

    Learning rate and pruning strength decay together, as in the thesis; otherwise pruning would win in the
    end.
    """

    epochs: int = 60
    decay: float = 0.95
    strength: float = 5e-4


def rem_pair(
    network: str,
    recipe: str,
    changes: Changes,
    *,
    levels: int | tuple[int, ...] = 11,
    quick: Schedule = Schedule(),  # noqa: B008  (immutable)
    smoke: Changes,
    note: str = "",
) -> tuple[TreeSetting, TreeSetting]:
    """A network without REM and with it, trained alike, as every network of the chapter is."""
    shorter: Changes = {"epochs": quick.epochs, "optim.decay": quick.decay, "patience": 0}
    plain = TreeSetting(
        name=f"{network}+Q",
        network=network,
        variant=PLAIN,
        recipe=recipe,
        changes=changes,
        levels=levels,
        budgets={"quick": shorter, "smoke": smoke},
        note=note,
    )
    pull = {"pruning.strength": quick.strength, "pruning.decay": quick.decay}
    rem = replace(
        plain,
        name=f"{network}+REM",
        variant=REM,
        changes=join_changes(changes, {"pruning": {}}),
        budgets={"quick": {**shorter, **pull}, "smoke": smoke},
    )
    return plain, rem


class Pair(NamedTuple):
    """The rows of one metric of a network without REM and with it."""

    plain: Row
    rem: Row


def pairs_of(rows: Iterable[Row], metric: str) -> dict[str, Pair]:
    """The pairs of each network, where both rows are there."""
    found = {(row.network, row.variant): row for row in rows if row.metric == metric}
    return {
        network: Pair(row, found[network, REM])
        for (network, variant), row in found.items()
        if variant == PLAIN and (network, REM) in found
    }
