"""How the runs behind a row were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from torchcaps.core import UserError

Budget = Literal["smoke", "quick", "full"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)


def read_budget(name: str) -> Budget:
    """The budget of that name; another name is an error."""
    for budget in BUDGETS:
        if budget == name:
            return budget
    raise UserError(f"budget must be one of {', '.join(BUDGETS)}, got {name!r}")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a run was given.

    Attributes:
        budget: That of its experiment; None where a script made the run.
        epochs: The most that it might take; None where nothing was trained.
        is_used_up: It took all of them, and might have improved with more.
        patience: Epochs without progress after which it ends, or with `iterations` adds one; 0 for never.
        iterations: First and last number of routing iterations, where they are annealed.
        pruning_strength: Where weights are pruned.
        images: Training images; 0 for all of them.
        model: The network, as its recipe has it.
        note: What the other fields cannot tell.
    """

    budget: Budget | None = None
    epochs: int | None = None
    is_used_up: bool = False
    patience: int = 0
    iterations: tuple[int, int] | None = None
    pruning_strength: float | None = None
    images: int = 0
    model: str = ""
    note: str = ""

    def __str__(self) -> str:
        training = self._training() if self.epochs is not None else ()
        parts = (f"{self.budget} budget" if self.budget else "", *training, self.note)
        return ", ".join(part for part in parts if part)

    def _training(self) -> tuple[str, ...]:
        epochs = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return (
            f"{'at most ' if self.patience else ''}{epochs}{' (all used)' if self.is_used_up else ''}",
            f"iterations {self.iterations[0]} to {self.iterations[1]}" if self.iterations else "",
            f"patience {self.patience}" if self.patience else "",
            "" if self.pruning_strength is None else f"pruning strength {self.pruning_strength:g}",
            f"{self.images:,} images" if self.images else "all images",
        )


def protocol_of(
    recipe: Mapping[str, Any], budget: Budget, *, epochs: int | None = None, note: str = ""
) -> Protocol:
    """The protocol of a run with this recipe, as its result holds it, that took so many epochs.

    The result's own recipe is read, because the plan may have changed since.
    """
    annealing, pruning = recipe.get("annealing"), recipe.get("pruning")
    patience = annealing["patience"] if annealing else recipe["patience"]
    return Protocol(
        budget=budget,
        epochs=recipe["epochs"],
        is_used_up=bool(patience) and epochs == recipe["epochs"],
        patience=patience,
        iterations=(annealing["r0"], annealing["r_max"]) if annealing else None,
        pruning_strength=float(pruning["strength"]) if pruning else None,
        images=recipe["data"]["limit"],
        model=_describe_model(recipe["model"]),
        note=note,
    )


def _describe_model(model: Mapping[str, Any]) -> str:
    """Name and changed fields of a network, as one line."""
    fields = ", ".join(f"{key}={json.dumps(value)}" for key, value in model.items() if key != "name")
    return f"{model['name']}({fields})" if fields else str(model["name"])
