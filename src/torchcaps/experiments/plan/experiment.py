"""An experiment: a list of runs that any number of short visits complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from torchcaps.core import Registry, UserError
from torchcaps.train import Recipe, load_recipe

from ..records import Budget, Rows, RunResult
from .claim import Claim
from .job import Perform, train_recipe
from .setting import Changes, Setting, join_changes


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One setting of an experiment, with one seed and one budget."""

    experiment: Experiment
    setting: Setting
    budget: Budget
    seed: int

    @property
    def name(self) -> str:
        """Setting and seed in words."""
        return f"{self.setting.name}, seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        """The recipe with the changes of setting, budget and seed."""
        changes = self.experiment.changes_of(self.setting, self.budget)
        return load_recipe(self.setting.recipe, changes={**changes, "seed": self.seed})

    def folder(self, out: Path) -> Path:
        """Where the run is kept, below the folder of all runs."""
        return out / self.experiment.slug / self.budget / f"{self.setting.slug}-{self.seed}"


def slug_of(label: str) -> str:
    """The label of an experiment as a file name."""
    return re.sub(r"[: ]", "-", label)


_NAMED = 16  # settings that an error names
FIRST_SEED = 42  # pictures of runs are kept of this one alone


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What stands behind one table or figure.

    Attributes:
        label: Of the table or figure in the thesis.
        data: The datasets that have to be there.
        gpu_minutes: Of the full budget, all seeds; an estimate.
        at_once: Runs side by side on one GPU, unless the visit says otherwise; 1 where runs are timed or
            share what they make.
        metrics: What becomes rows.
        budgets: The changes that make a run smaller than the thesis's; "full" has none. A setting that
            nothing makes smaller has full runs where quick ones are asked for.
        perform: Makes one run in its folder. It leaves `result.json` last, and goes on where it stopped.
        draw: Makes a PNG of the rows of the experiment; None while the runs that it shows are missing.
        curve: Finds in one result how a metric went within the run: numbers by what they are drawn against.
        deviations: Where the runs differ from the thesis's, in sentences.
        other_data: Metrics of which the thesis's figures are of other images, flights or GPUs than ours. They
            stand beside ours, and no verdict is given on them.
        counted: Metrics that follow from the network of a setting: no seed, training or machine changes them,
            so one run decides the thesis's figures. It is said here and not of the metric, because the same
            one may depend on the seed elsewhere, as widths do that a search finds.
    """

    label: str
    chapter: str
    title: str
    settings: tuple[Setting, ...]
    data: tuple[str, ...]
    gpu_minutes: int
    seeds: int = 5
    at_once: int = 4
    metrics: tuple[str, ...] = ("test_accuracy",)
    budgets: Mapping[Budget, Changes] = field(default_factory=dict)
    perform: Perform = train_recipe
    draw: Callable[[Rows], bytes | None] | None = None
    curve: Callable[[RunResult, str], Mapping[int, float]] | None = None
    claims: tuple[Claim, ...] = ()
    deviations: tuple[str, ...] = ()
    other_data: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The label as a file name."""
        return slug_of(self.label)

    def only(self, *patterns: str) -> Experiment:
        """The same with those settings whose name matches a pattern, in which * stands for any letters."""
        patterns = tuple(pattern.lower() for pattern in patterns)
        chosen = tuple(
            setting
            for setting in self.settings
            if any(fnmatchcase(setting.name.lower(), pattern) for pattern in patterns)
        )
        if not chosen:
            first = "; ".join(setting.name for setting in self.settings[:_NAMED])
            more = len(self.settings) - _NAMED
            raise UserError(
                f"{self.label} has no setting that matches {' or '.join(map(repr, patterns))}; it has {first}"
                + (f"; and {more} more" if more > 0 else "")
            )
        return replace(self, settings=chosen)

    def planned(self, budget: Budget, seeds: int | None = None) -> Iterator[PlannedRun]:
        """One seed of every setting before the second seed of any."""
        for seed in range(FIRST_SEED, FIRST_SEED + (seeds or self.seeds)):
            for setting in self.settings:
                yield self.run_of(setting, budget, seed)

    def run_of(self, setting: Setting, budget: Budget, seed: int) -> PlannedRun:
        """The run of a setting; it has the full budget where nothing makes a quick one smaller."""
        if budget == "quick" and self.changes_of(setting, "quick") == self.changes_of(setting, "full"):
            budget = "full"
        return PlannedRun(experiment=self, setting=setting, budget=budget, seed=seed)

    def changes_of(self, setting: Setting, budget: Budget) -> dict[str, object]:
        """What a setting changes of its recipe in a budget."""
        return join_changes(setting.changes, self.budgets.get(budget, {}), setting.budgets.get(budget, {}))


EXPERIMENTS: Registry[Experiment] = Registry("experiment")


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known by its label."""
    return EXPERIMENTS.register(experiment.label)(experiment)


BEYOND = "beyond the thesis"  # what stands in place of a chapter
# the images come with the package, and networks learn from them in minutes
on_mnist5k = partial(Experiment, chapter=BEYOND, data=(), gpu_minutes=5, seeds=3)
