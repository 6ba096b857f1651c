"""What a run found that does more than train, and the `result.json` it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from torchcaps.core import Number
from torchcaps.storage import write_json
from torchcaps.train import (
    Machine,
    Run,
    TrainResult,
    Watcher,
    device_of,
    load_run,
    provenance,
    recipe_as_json,
    train,
)

from ..records import Details
from .experiment import PlannedRun


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Metrics and details of a run; `extra` are further keys of its `result.json`."""

    metrics: Mapping[str, Number]
    parameters: int
    seconds: float
    precision: str
    details: Details = field(default_factory=Details)
    extra: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_training(cls, trained: TrainResult) -> Outcome:
        """What the training found, by the content of its `result.json`."""
        return cls(
            metrics=trained["metrics"],
            parameters=trained["parameters"],
            seconds=trained["seconds"],
            precision=trained["precision"],
        )

    def with_metrics(self, metrics: Mapping[str, Number]) -> Outcome:
        """The same with further metrics."""
        return replace(self, metrics={**self.metrics, **metrics})


def train_network(run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> tuple[Run, Outcome]:
    """The trained network of a run, in `training/` of its folder, and what its training gave."""
    folder = run.folder(out) / "training"
    outcome = Outcome.of_training(train(run.recipe, folder, machine, resume=True, watcher=watcher))
    return load_run(folder, device_of(machine)), outcome


def leave_result(run: PlannedRun, out: Path, device: torch.device, outcome: Outcome) -> None:
    """Write `result.json` of a run, with the recipe, seed, commit, versions and device it was made with."""
    content = {
        "recipe": recipe_as_json(run.recipe),
        "seed": run.seed,
        **provenance(device),
        "metrics": dict(outcome.metrics),
        **{key: getattr(outcome, key) for key in ("parameters", "seconds", "precision")},
        **outcome.extra,
        **outcome.details.as_json(),
    }
    write_json(run.folder(out) / "result.json", content)
