"""An experiment is a list of runs that any number of short visits complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from torchcaps.core.registry import Registry
from torchcaps.storage import write_json
from torchcaps.train import Machine, Recipe, Watcher, load_recipe, train
from torchcaps.train.recipe import recipe_as_json
from torchcaps.train.results import provenance

BUDGETS = ("smoke", "quick", "full")
Rows = list[dict[str, Any]]
RowsOf = Callable[[str], Rows]  # the rows of an experiment by its label, none where it has no results


Verdict = Literal["confirmed", "not confirmed", "beyond", "open"]


class Finding(NamedTuple):
    """What the rows say about a claim, and the numbers that decide it."""

    verdict: Verdict
    because: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis, or one of ours that goes beyond it, and how rows decide it."""

    text: str
    check: Callable[[RowsOf], Finding]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of a table or point of a figure: a recipe, what is changed of it, and the thesis's figure.

    `options` are for experiments that do more than train; `budgets` adds to the experiment's own.
    """

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    budgets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    thesis: float | Mapping[str, float] | None = None  # by metric, as printed; a number is the test accuracy
    note: str = ""

    @property
    def slug(self) -> str:
        """The name as part of a folder's."""
        return re.sub(r"[^\w.]+", "-", self.name).strip("-").lower()

    @property
    def goes_back(self) -> bool:
        """Whether its runs look at those of another setting, which `options` names as `of`."""
        return "of" in self.options

    def thesis_value(self, metric: str) -> float | None:
        """What the thesis prints for a metric, if it does."""
        if isinstance(self.thesis, Mapping):
            return self.thesis.get(metric)
        return self.thesis if metric == "test_accuracy" else None


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One setting of an experiment, with one seed and one budget."""

    experiment: Experiment
    setting: Setting
    budget: str
    seed: int

    @property
    def name(self) -> str:
        """Setting and seed in words."""
        return f"{self.setting.name}, seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        """The recipe with everything changed that setting, budget and seed change."""
        shorter = self.experiment.budgets.get(self.budget, ()), self.setting.budgets.get(self.budget, ())
        changes = (*self.setting.changes, *shorter[0], *shorter[1], f"seed={self.seed}")
        return load_recipe(self.setting.recipe, changes)

    def folder(self, out: Path) -> Path:
        """Where the run is kept."""
        return out / self.experiment.slug / self.budget / f"{self.setting.slug}-{self.seed}"


def train_recipe(run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
    """Train the recipe of a run; what most experiments do."""
    return train(run.recipe, folder, machine, resume=True, watcher=watcher)


def leave_result(
    run: PlannedRun, folder: Path, device: torch.device, *, result: Mapping[str, Any]
) -> dict[str, Any]:
    """Write `result.json` of a run that did more than train, with what every result says of its making.

    `result` brings at least metrics, parameters, seconds and precision.
    """
    content = {"recipe": recipe_as_json(run.recipe), "seed": run.seed, **provenance(device), **result}
    write_json(folder / "result.json", content)
    return content


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What stands behind one table or figure, by its label in the thesis.

    `budgets` gives the changes that make a run smaller than the thesis's; "full" has none. `perform` makes
    one run in its folder: it leaves `result.json` last, returns its content, and goes on where it stopped.
    `draw` makes a picture at a path from the rows of `results/<label>.json`. `curve` finds in one result how
    a metric went within the run: numbers by what they are drawn against.
    """

    label: str
    chapter: str
    title: str
    settings: tuple[Setting, ...]
    data: tuple[str, ...]
    gpu_minutes: int  # of the full budget, all seeds; an estimate
    seeds: int = 5
    at_once: int = 4  # runs side by side on one GPU, unless told otherwise
    metrics: tuple[str, ...] = ("test_accuracy",)
    budgets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    perform: Callable[[PlannedRun, Path, Machine, Watcher], dict[str, Any]] = train_recipe
    draw: Callable[[Rows, Path], None] | None = None
    curve: Callable[[dict[str, Any], str], Mapping[int, float]] | None = None
    claims: tuple[Claim, ...] = ()
    deviations: tuple[str, ...] = ()  # where the runs differ from the thesis's, in sentences

    @property
    def slug(self) -> str:
        """The label as a file name."""
        return re.sub(r"[: ]", "-", self.label)

    def planned(self, budget: str, seeds: int | None = None) -> Iterator[PlannedRun]:
        """One seed of every setting before the second seed of any."""
        for seed in range(42, 42 + (seeds or self.seeds)):
            for setting in self.settings:
                yield PlannedRun(experiment=self, setting=setting, budget=budget, seed=seed)


def protocol_of(result: Mapping[str, Any], budget: str, note: str = "") -> str:
    """What a run got, in words; its own recipe says so, for the plan may have changed since."""
    recipe = result["recipe"]
    limit = recipe["data"]["limit"]
    stops = _stopping(recipe)
    epochs = f"at most {recipe['epochs']} epochs" if stops else f"{recipe['epochs']} epochs"
    if stops and result["metrics"].get("epochs") == recipe["epochs"]:
        epochs = f"{epochs} (all used)"  # it might have gone on
    pruning = recipe.get("pruning")
    strength = f"pruning strength {pruning['strength']:g}" if pruning else ""
    images = f"{limit:,} images" if limit else "all images"
    return ", ".join(part for part in (f"{budget} budget", epochs, stops, strength, images, note) if part)


def _stopping(recipe: Mapping[str, Any]) -> str:
    """What may end a run before its epochs are over."""
    if annealing := recipe.get("annealing"):
        return f"iterations {annealing['r0']} to {annealing['r_max']}, patience {annealing['patience']}"
    return f"patience {recipe['patience']}" if recipe["patience"] else ""


EXPERIMENTS: Registry[Experiment] = Registry("experiment")


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known by its label."""
    return EXPERIMENTS.register(experiment.label)(experiment)
