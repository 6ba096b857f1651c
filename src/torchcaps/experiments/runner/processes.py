"""The runs of experiments in several processes of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from torchcaps.core import UserError
from torchcaps.train import Machine, check_machine

from ..plan import EXPERIMENTS, Experiment, PlannedRun
from ..records import Budget
from .make import missing_runs, perform_run
from .visit import Visit


class _Address(NamedTuple):
    """The names that find a planned run."""

    label: str
    setting: str
    budget: Budget
    seed: int


def run_in_processes(
    experiments: Sequence[Experiment],
    out: Path,
    machine: Machine,
    *,
    processes: int,
    budget: Budget = "full",
    seeds: int | None = None,
    visit: Visit | None = None,
) -> None:
    """Make the missing runs of all experiments in several processes, one run in each, first seeds first.

    The processes share a GPU. The threads of one process (`run_missing`) start sooner and take less memory,
    but wait for each other at every launch. Left out are experiments whose runs must be alone, because they
    are timed, and runs that reuse those of another setting, which would be made twice.
    """
    visit = visit or Visit()
    check_machine(machine)
    runs = [
        run
        for experiment in experiments
        for run in missing_runs(experiment.planned(budget, seeds), out)
        if experiment.at_once > 1 and not run.setting.reuses
    ]
    runs.sort(key=lambda run: run.seed)  # experiments and settings stay in order
    concurrency = min(processes, len(runs))
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:  # CUDA does not survive a fork
        pending = [
            pool.submit(_make_run, _address(run), out, machine, visit.ends_at, concurrency) for run in runs
        ]
        try:
            for future in as_completed(pending):
                for words in future.result():
                    visit.on_run(words)
        except BrokenProcessPool as error:
            raise UserError(
                "a process was killed, perhaps for lack of memory; finished runs are kept: "
                "give the same command again, with fewer processes"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _address(run: PlannedRun) -> _Address:
    """A run by its names: an experiment holds functions, and cannot be sent to another process."""
    return _Address(run.experiment.label, run.setting.name, run.budget, run.seed)


def _make_run(address: _Address, out: Path, machine: Machine, ends_at: float, concurrency: int) -> list[str]:
    """Make one run, in a process of its own; return the messages about it."""
    experiment = EXPERIMENTS[address.label]
    setting = next(found for found in experiment.settings if found.name == address.setting)
    run = PlannedRun(experiment=experiment, setting=setting, budget=address.budget, seed=address.seed)
    said: list[str] = []
    perform_run(run, out, machine, Visit.until(ends_at, said.append), concurrency=concurrency)
    return said
