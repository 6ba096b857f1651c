"""Runs what an experiment still lacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.storage import write_json
from torchcaps.train import Machine, Silent, check_machine, side_by_side

from ..plan import BUDGETS, Experiment, PlannedRun

_DEVICE_LOST: Any = getattr(torch, "AcceleratorError", ())  # before torch 2.8 nothing tells them apart
_GOES_ON = "the next visit goes on from its last checkpoint"


class OutOfTimeError(Exception):
    """The visit is over; the run that was under way continues in the next."""


class Visit(Silent):
    """A piece of time on a machine: how long, how many runs side by side, and who hears about each run.

    It watches the runs: once time is up, each stops before its next epoch. Without `at_once` a GPU gets as
    many runs at a time as the experiment says, a CPU one.
    """

    def __init__(
        self,
        minutes: float = float("inf"),
        *,
        at_once: int | None = None,
        on_run: Callable[[str], None] = lambda words: None,
    ) -> None:
        if not minutes >= 0:  # also true of nan, which would never be over
            raise UserError(f"minutes must not be negative, got {minutes}")
        self.at_once, self.on_run = at_once, on_run
        self._end = time.monotonic() + 60 * minutes

    @property
    def is_over(self) -> bool:
        """Whether nothing more should be begun."""
        return time.monotonic() > self._end

    @property
    def ends_at(self) -> float:
        """The hour when it is over, by the clock on the wall, which other processes and machines share."""
        return time.time() + self._end - time.monotonic()

    @classmethod
    def until(cls, hour: float, on_run: Callable[[str], None] = lambda words: None) -> Visit:
        """The part of a visit that another process or machine takes over."""
        return cls(max(0.0, (hour - time.time()) / 60), on_run=on_run)

    def stop(self) -> None:
        """Let it be over now."""
        self._end = float("-inf")

    def epoch_started(self, epoch: int, steps: int) -> None:
        """Stop the run when time is up."""
        if self.is_over:
            raise OutOfTimeError


def run_missing(
    experiment: Experiment,
    out: Path,
    machine: Machine,
    *,
    budget: str = "full",
    seeds: int | None = None,
    visit: Visit | None = None,
) -> dict[str, int]:
    """Make the runs that have no result yet, until the time is up; how many runs are done, failed and left.

    A run that fails leaves its error in `error.json` and is not tried again while that file is there.
    """
    visit = visit or Visit()
    check_machine(machine)  # here, not in each run: a mistyped device is no failure of theirs
    runs = missing_runs(experiment, out, budget=budget, seeds=seeds)
    at_once = visit.at_once or (experiment.at_once if uses_gpu(machine) else 1)
    jobs = [partial(perform_run, run, out, machine, visit) for run in runs]
    side_by_side(jobs, machine, at_once=at_once, stop=visit.stop)
    return count_runs(experiment, out, budget=budget, seeds=seeds)


def missing_runs(
    experiment: Experiment, out: Path, *, budget: str, seeds: int | None = None
) -> list[PlannedRun]:
    """The planned runs that have neither a result nor an error, in the order they should be made."""
    if budget not in BUDGETS:
        raise UserError(f"budget must be one of {', '.join(BUDGETS)}, got {budget!r}")
    return [
        run
        for run in experiment.planned(budget, seeds)
        if not any((run.folder(out) / name).is_file() for name in ("result.json", "error.json"))
    ]


def perform_run(run: PlannedRun, out: Path, machine: Machine, visit: Visit) -> None:
    """Make one run in its folder below `out`, which then holds its result or its error.

    It holds neither where time was up, the data is missing, or the device was lost: a crash beside it takes
    all runs of a shared GPU along, and none of them is to blame.
    """
    if visit.is_over:
        return
    visit.on_run(run.name)
    try:
        run.experiment.perform(run, run.folder(out), machine, visit)
    except OutOfTimeError:
        visit.on_run(f"{run.name} stopped: time is up; {_GOES_ON}")
    except MissingDataError as error:  # nothing failed: the run waits for its data
        visit.on_run(f"{run.name} left out: {error}")
    except _DEVICE_LOST as error:
        visit.stop()  # no run of this process gets the device back
        reason = str(error).partition("\n")[0]
        visit.on_run(f"{run.name} stopped: the device was lost ({reason}); {_GOES_ON}")
    except Exception as error:  # whatever it is, the other runs go on
        write_json(run.folder(out) / "error.json", _describe(run, error))
        visit.on_run(f"{run.name} failed: {error}")


def _describe(run: PlannedRun, error: Exception) -> dict[str, Any]:
    return {"setting": run.setting.name, "seed": run.seed, "error": f"{type(error).__name__}: {error}"}


def uses_gpu(machine: Machine) -> bool:
    """Whether runs on this machine would take a GPU."""
    return machine.device in ("auto", "cuda") and torch.cuda.is_available()


def count_runs(experiment: Experiment, out: Path, *, budget: str, seeds: int | None = None) -> dict[str, int]:
    """How many of the planned runs are done, failed and left."""
    folders = [run.folder(out) for run in experiment.planned(budget, seeds)]
    done = sum((folder / "result.json").is_file() for folder in folders)
    failed = sum((folder / "error.json").is_file() for folder in folders)
    return {"done": done, "failed": failed, "left": len(folders) - done - failed, "planned": len(folders)}
