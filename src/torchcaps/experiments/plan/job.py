"""A planned run that is being made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from torchcaps.data import data_protocol
from torchcaps.storage import read_json, write_json
from torchcaps.train import (
    Machine,
    Recipe,
    Run,
    Watcher,
    device_of,
    load_run,
    provenance,
    recipe_as_json,
    train,
)

from .outcome import Outcome

if TYPE_CHECKING:
    from .experiment import PlannedRun  # it imports this module


@dataclass(frozen=True)
class Job:
    """A planned run that is being made: where it is kept, what it is made on, and who may stop it.

    Attributes:
        run: What to make.
        out: Folder of all runs.
        machine: Where to make it.
        watcher: Hears how far it is, and says when to stop.
        concurrency: Runs that share the device; the result records it.
    """

    run: PlannedRun
    out: Path
    machine: Machine
    watcher: Watcher
    concurrency: int = 1

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.run.folder(self.out)

    @property
    def device(self) -> torch.device:
        """What the run computes on."""
        return device_of(self.machine)

    @property
    def data_dir(self) -> Path | None:
        """Where datasets lie."""
        return self.machine.data_dir

    def with_data(self, data_dir: Path) -> Job:
        """The same with datasets from another folder."""
        return replace(self, machine=replace(self.machine, data_dir=data_dir))

    def make(self) -> None:
        """Make the run, then add to its result how many shared the device, and the protocol of its data."""
        self.run.experiment.perform(self)
        if not self.run.setting.reuses:  # such a run is the work of another one
            path, protocol = self.folder / "result.json", data_protocol(self.run.recipe.data.name)
            more = {"concurrency": self.concurrency} | ({"data_protocol": protocol} if protocol > 1 else {})
            write_json(path, read_json(path) | more)

    def train(self, recipe: Recipe, folder: Path) -> Outcome:
        """Train `recipe` in `folder`, on from where it stopped, and return what the training gave."""
        trained = train(recipe, folder, self.machine, resume=True, watcher=self.watcher)
        return Outcome.of_training(trained)

    def train_and_tidy(self, recipe: Recipe, folder: Path) -> Outcome:
        """Train as `train` does, then remove the checkpoint."""
        outcome = self.train(recipe, folder)
        (folder / "last.ckpt").unlink(missing_ok=True)  # up to 0.5 GB, of no use once there is a result
        return outcome

    def train_network(self) -> tuple[Run, Outcome]:
        """The trained network of the run, in `training/` of its folder, and what its training gave."""
        outcome = self.train(self.run.recipe, self.folder / "training")
        return load_run(self.folder / "training", self.device), outcome

    def leave_result(self, outcome: Outcome) -> None:
        """Write `result.json`, with the recipe, seed, commit, versions and device the run was made with."""
        content = {
            "recipe": recipe_as_json(self.run.recipe),
            "seed": self.run.seed,
            **provenance(self.device),
            **outcome.as_json(),
        }
        write_json(self.folder / "result.json", content)


Perform = Callable[[Job], None]


def train_recipe(job: Job) -> None:
    """Train the recipe of a run; what most experiments do."""
    job.train(job.run.recipe, job.folder)
