"""Runs what an experiment still lacks, and gathers what there is."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.train import Machine, Silent
from torchcaps.train.checkpoint import write_json

from .gather import summarise, write_results
from .plan import BUDGETS, Experiment, PlannedRun
from .tables import load_results


class OutOfTimeError(Exception):
    """The visit is over; the run that was under way continues in the next."""


class _Deadline(Silent):
    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def epoch_started(self, epoch: int, steps: int) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTimeError


def run_missing(
    experiment: Experiment,
    out: Path,
    machine: Machine,
    *,
    budget: str = "full",
    seeds: int | None = None,
    minutes: float = float("inf"),
    on_run: Callable[[str], None] = lambda name: None,
) -> dict[str, int]:
    """Make the runs that have no result yet, until the time is up; how many runs are done, failed and left.

    A run that fails leaves its error in `error.json` and is not tried again while that file is there.
    """
    _check_budget(budget)
    deadline = time.monotonic() + 60 * minutes
    for run in experiment.planned(budget, seeds):
        folder = run.folder(out)
        if (folder / "result.json").is_file() or (folder / "error.json").is_file():
            continue
        if time.monotonic() > deadline:
            break
        on_run(run.name)
        try:
            experiment.perform(run, folder, machine, _Deadline(deadline))
        except OutOfTimeError:
            break
        except MissingDataError as error:  # nothing failed: the run waits for its data
            on_run(f"{run.name} left out: {error}")
        except Exception as error:  # whatever it is, the other runs go on
            write_json(folder / "error.json", _describe(run, error))
    return count_runs(experiment, out, budget=budget, seeds=seeds)


def _describe(run: PlannedRun, error: Exception) -> dict[str, Any]:
    return {"setting": run.setting.name, "seed": run.seed, "error": f"{type(error).__name__}: {error}"}


def count_runs(experiment: Experiment, out: Path, *, budget: str, seeds: int | None = None) -> dict[str, int]:
    """How many of the planned runs are done, failed and left."""
    folders = [run.folder(out) for run in experiment.planned(budget, seeds)]
    done = sum((folder / "result.json").is_file() for folder in folders)
    failed = sum((folder / "error.json").is_file() for folder in folders)
    return {"done": done, "failed": failed, "left": len(folders) - done - failed, "planned": len(folders)}


def merge_runs(experiment: Experiment, source: Path, out: Path) -> int:
    """Take over results made elsewhere and leave those that are here already; how many were new."""
    merged = 0
    for path in sorted((source / experiment.slug).glob("*/*/result.json")):
        target = out / path.relative_to(source)
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            merged += 1
    return merged


def gather_runs(experiment: Experiment, out: Path, results: Path, *, budget: str, command: str) -> int:
    """Write `results/<label>.json` and the picture from the finished runs; the number of rows."""
    rows: list[dict[str, Any]] = []
    for setting in experiment.settings:
        any_run = PlannedRun(experiment=experiment, setting=setting, budget=budget, seed=0).folder(out)
        paths = sorted(any_run.parent.glob(f"{any_run.name.removesuffix('0')}[0-9]*/result.json"))
        runs = [json.loads(path.read_text()) for path in paths]
        protocol = experiment.protocol(setting, budget)
        for metric in experiment.metrics:
            having = [run for run in runs if metric in run["metrics"]]
            if having:
                thesis = setting.thesis_value(metric)
                rows.append(
                    summarise(having, setting=setting.name, metric=metric, thesis=thesis, protocol=protocol)
                )
    if rows:
        write_results(results, experiment.slug, rows, command)
        if experiment.draw is not None:
            experiment.draw(load_results(results, experiment.slug), results / f"{experiment.slug}.png")
    return len(rows)


def _check_budget(budget: str) -> None:
    if budget not in BUDGETS:
        raise UserError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}")
