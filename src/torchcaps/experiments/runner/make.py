"""Makes the runs that an experiment still lacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from torchcaps.core import MissingDataError, first_line
from torchcaps.storage import DiskError, write_json
from torchcaps.train import Machine, StoppedError, check_machine, side_by_side

from ..plan import Experiment, Job, PlannedRun
from ..records import Budget
from .visit import StopInTime, Visit

LEFT_BY_RUNS = ("result.json", "error.json")  # one of them is there once a run is over
_CONTINUES = "the next call continues from its last checkpoint"


@dataclass(frozen=True, kw_only=True)
class RunCounts:
    """How many runs of an experiment have a result, an error, or neither."""

    done: int
    failed: int
    left: int
    planned: int


def run_missing(
    experiment: Experiment,
    out: Path,
    machine: Machine,
    *,
    budget: Budget = "full",
    seeds: int | None = None,
    visit: Visit | None = None,
) -> RunCounts:
    """Make runs that have no result until the time is up; return how many are done, failed and left.

    A run that fails leaves its error in `error.json` and is not tried again while that file is there.
    """
    visit = visit or Visit()
    check_machine(machine)  # a mistyped device is not a failure of the runs
    planned = list(experiment.planned(budget, seeds))
    runs = missing_runs(planned, out)
    at_once = visit.at_once or (experiment.at_once if uses_gpu(machine) else 1)
    concurrency = min(at_once, len(runs))
    if concurrency > 1:  # tuning convolutions frees memory, and that breaks a graph being captured beside it
        machine = replace(machine, tune_convolutions=False)
    works = [partial(perform_run, run, out, machine, visit, concurrency=concurrency) for run in runs]
    side_by_side(works, machine, at_once=at_once, stop=visit.stop)
    return count_runs(planned, out)


def missing_runs(planned: Iterable[PlannedRun], out: Path) -> list[PlannedRun]:
    """The planned runs that have neither a result nor an error, in the order they should be made."""
    return [run for run in planned if not any((run.folder(out) / name).is_file() for name in LEFT_BY_RUNS)]


def perform_run(run: PlannedRun, out: Path, machine: Machine, visit: Visit, *, concurrency: int) -> None:
    """Make one run in its folder below `out`, which then holds its result or its error.

    It holds neither where the time was up, the data is missing, the disk was full, or the device was lost: a
    crash of one process takes all runs of a shared GPU along, and none of them failed by itself.

    Args:
        run: What to make.
        out: Folder of all runs.
        machine: Where to make it.
        visit: The time there is, and who hears about the run.
        concurrency: Runs that share the device; the result records it.
    """
    if visit.is_over:
        return
    visit.on_run(run.name)
    job = Job(run, out, machine, StopInTime(visit), concurrency)
    try:
        job.make()
    except StoppedError:
        visit.on_run(f"{run.name} stopped: time is up; {_CONTINUES}")
    except MissingDataError as error:  # not a failure: the run waits for its data
        visit.on_run(f"{run.name} left out: {error}")
    except torch.AcceleratorError as error:
        visit.stop()  # no run of this process gets the device back
        visit.on_run(f"{run.name} stopped: the device was lost ({first_line(error)}); {_CONTINUES}")
    except DiskError as error:
        visit.stop()  # no other run could be written either
        visit.on_run(f"{run.name} stopped: {error}; {_CONTINUES}")
    except Exception as error:  # whatever it is, the other runs go on
        write_json(job.folder / "error.json", _describe(run, error))
        visit.on_run(f"{run.name} failed: {error}")


def _describe(run: PlannedRun, error: Exception) -> dict[str, object]:
    return {"setting": run.setting.name, "seed": run.seed, "error": f"{type(error).__name__}: {error}"}


def uses_gpu(machine: Machine) -> bool:
    """Whether runs on this machine would take a GPU."""
    return machine.device in ("auto", "cuda") and torch.cuda.is_available()


def count_runs(planned: Iterable[PlannedRun], out: Path) -> RunCounts:
    """How many of the planned runs are done, failed and left; one that failed and has a result is done."""
    folders = [run.folder(out) for run in planned]
    without = [folder for folder in folders if not (folder / "result.json").is_file()]
    failed = sum((folder / "error.json").is_file() for folder in without)
    done = len(folders) - len(without)
    return RunCounts(done=done, failed=failed, left=len(without) - failed, planned=len(folders))
