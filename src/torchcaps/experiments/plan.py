"""An experiment is a list of runs that any number of short visits complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchcaps.core.registry import Registry
from torchcaps.train import Recipe, load_recipe

BUDGETS = ("smoke", "quick", "full")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of a table or point of a figure: a recipe, what is changed of it, and the thesis's figure."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    thesis: float | None = None  # test accuracy in percent, where the thesis prints it
    note: str = ""

    @property
    def slug(self) -> str:
        """The name as part of a folder's."""
        return re.sub(r"[^\w.]+", "-", self.name).strip("-").lower()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What stands behind one table or figure, by its label in the thesis.

    `budgets` gives the changes that make a run smaller than the thesis's; "full" has none.
    """

    label: str
    chapter: str
    title: str
    settings: tuple[Setting, ...]
    data: tuple[str, ...]
    gpu_minutes: int  # of the full budget, five seeds; an estimate
    seeds: int = 5
    metrics: tuple[str, ...] = ("test_accuracy",)
    budgets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The label as a file name."""
        return re.sub(r"[: ]", "-", self.label)

    def planned(self, seeds: int | None = None) -> Iterator[tuple[Setting, int]]:
        """One seed of every setting before the second seed of any."""
        for seed in range(42, 42 + (seeds or self.seeds)):
            yield from ((setting, seed) for setting in self.settings)

    def recipe(self, setting: Setting, budget: str, seed: int = 42) -> Recipe:
        """The recipe of one run."""
        changes = (*setting.changes, *self.budgets.get(budget, ()), f"seed={seed}")
        return load_recipe(setting.recipe, changes)

    def folder(self, out: Path, budget: str, setting: Setting, seed: int) -> Path:
        """Where one run is kept."""
        return out / self.slug / budget / f"{setting.slug}-{seed}"

    def protocol(self, setting: Setting, budget: str) -> str:
        """What the runs of a row got, in words."""
        recipe = self.recipe(setting, budget)
        images = f"{recipe.data.limit:,} images" if recipe.data.limit else "all images"
        epochs = (
            f"at most {recipe.epochs} epochs"
            if recipe.annealing or recipe.patience
            else f"{recipe.epochs} epochs"
        )
        parts = [f"{budget} budget", epochs, images, setting.note]
        return ", ".join(part for part in parts if part)


EXPERIMENTS: Registry[Experiment] = Registry("experiment")


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known by its label."""
    return EXPERIMENTS.register(experiment.label)(experiment)
