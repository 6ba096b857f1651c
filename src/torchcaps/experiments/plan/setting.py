"""A setting: a recipe, what is changed of it, and what the thesis prints for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..records import Budget

Values = Mapping[str, object]  # a group of keys of a recipe, such as its model
Changes = Mapping[str, object]  # of a recipe: values by their place, such as `optim.learning_rate`

SMOKE: Changes = {"data.limit": 120, "data.validation": 0.2, "batch_size": 16, "epochs": 1}


def join_changes(*parts: Changes) -> dict[str, object]:
    """All changes in one mapping; a repeated key has its last value and its last place in the order."""
    joined: dict[str, object] = {}
    for part in parts:
        for key, value in part.items():
            joined.pop(key, None)  # a change of `model` must come after those of `model.routing`
            joined[key] = value
    return joined


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of a table or point of a figure.

    Attributes:
        name: Unique in the experiment.
        recipe: The name of a packaged recipe.
        network: What settings that are compared with each other have in common.
        variant: In what these settings differ.
        changes: Of the recipe.
        budgets: Further changes for a budget, after those of the experiment.
        thesis: What the thesis prints, by metric, in the unit of the metric.
        note: What the other columns of the table cannot tell.
        reuses: The setting of another experiment whose runs are looked at instead of being made.
    """

    name: str
    recipe: str
    network: str = ""
    variant: str = ""
    changes: Changes = field(default_factory=dict)
    budgets: Mapping[Budget, Changes] = field(default_factory=dict)
    thesis: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    reuses: str = ""

    @property
    def slug(self) -> str:
        """The name as part of a folder's."""
        return re.sub(r"[^\w.]+", "-", self.name).strip("-").lower()
