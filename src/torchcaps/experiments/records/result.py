"""The result of one run, as `result.json` holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torchcaps.core import Number, UserError, build_dataclass, convert
from torchcaps.storage import read_json

from .details import Details

_ASKED_OF_RECIPES = {"model", "data", "epochs", "patience"}  # for the protocol of a row


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Where, when and with what a run was made.

    Attributes:
        epochs: That the training took, and `epochs_allowed` those that it might have taken.
        concurrency: Runs that shared the device; None where it was not recorded.
        parts: Where each part was trained, of a run that was stopped and went on elsewhere.
    """

    seed: int
    commit: str | None
    versions: Mapping[str, str]
    device: str
    seconds: Number
    precision: str
    parameters: int
    concurrency: int | None = None
    parts: tuple[Mapping[str, Any], ...] = ()
    epochs: int | None = None
    epochs_allowed: int | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> RunFacts:
        """Read the facts among the keys of a result, or of the run of a row."""
        known = {field.name: content[field.name] for field in fields(cls) if field.name in content}
        return build_dataclass(cls, known, where)

    @property
    def devices(self) -> str:
        """The devices that it was trained on, and tested on, in this order."""
        return ", then ".join(dict.fromkeys([*(part["device"] for part in self.parts), self.device]))

    @property
    def is_used_up(self) -> bool:
        """Whether the run took all epochs that it was allowed."""
        return self.epochs is not None and self.epochs == self.epochs_allowed


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run found, and how it was made.

    Attributes:
        recipe: The recipe it was made with, as plain data.
        annealing: Metrics after each step of the annealing, where there was one.
        data_protocol: Of the dataset, when the run was made.
    """

    facts: RunFacts
    metrics: Mapping[str, Number]
    recipe: Mapping[str, Any]
    annealing: tuple[Mapping[str, Number], ...] = ()
    details: Details
    data_protocol: int = 1

    @classmethod
    def from_json(cls, content: object) -> RunResult:
        """Read the content of `result.json`; what is no result of a run is an error."""
        if not isinstance(content, Mapping):
            raise UserError("it lacks metrics or a recipe")
        metrics, recipe = _groups(content)
        trained = "epochs" in metrics
        epochs = {"epochs": metrics["epochs"], "epochs_allowed": recipe["epochs"]} if trained else {}
        return cls(
            facts=RunFacts.from_json({**content, **epochs}, "result"),
            metrics=metrics,
            recipe=recipe,
            annealing=convert(tuple[Mapping[str, Any], ...], content.get("annealing", ()), "annealing"),
            details=Details.from_json(content),
            data_protocol=convert(int, content.get("data_protocol", 1), "data_protocol"),
        )


def read_result(path: Path) -> RunResult:
    """The result in a file; a damaged one is an error that says what to do."""
    try:
        return RunResult.from_json(read_json(path))
    except UserError as error:
        raise UserError(f"{path} is damaged ({error}); delete it and call the same command again") from error


def _groups(content: Mapping[str, Any]) -> tuple[Mapping[str, Number], Mapping[str, Any]]:
    """Metrics and recipe, checked: results also come from other machines."""
    metrics, recipe = content.get("metrics"), content.get("recipe")
    if not isinstance(metrics, Mapping) or not isinstance(recipe, Mapping):
        raise UserError("it lacks metrics or a recipe")
    if lacking := _ASKED_OF_RECIPES - recipe.keys():
        raise UserError(f"its recipe lacks {min(lacking)}")
    for name, value in metrics.items():
        if not isinstance(value, int | float):
            raise UserError(f"its metric {name} is no number")
    return metrics, recipe
