"""The runs of experiments in several processes of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from torchcaps.core.errors import UserError
from torchcaps.train import Machine, check_machine

from ..plan import EXPERIMENTS, Experiment, PlannedRun
from .make import Visit, missing_runs, perform_run


def run_in_processes(
    experiments: Sequence[Experiment],
    out: Path,
    machine: Machine,
    *,
    processes: int,
    budget: str = "full",
    seeds: int | None = None,
    visit: Visit | None = None,
) -> None:
    """Make the missing runs of all experiments in so many processes, each at one run, first seeds first.

    On a GPU they share it. Threads of one process (`run_missing`) start sooner and take less memory, but wait
    for each other at every launch. What must be alone is left out: experiments that say so, because their
    runs are timed, and runs that go back to others, which would be made twice.
    """
    visit = visit or Visit()
    check_machine(machine)
    runs = [
        run
        for experiment in experiments
        for run in missing_runs(experiment, out, budget=budget, seeds=seeds)
        if experiment.at_once > 1 and not run.setting.goes_back
    ]
    runs.sort(key=lambda run: run.seed)  # experiments and settings stay in order
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:  # CUDA does not survive a fork
        pending = [pool.submit(_make_run, *_address(run), out, machine, visit.ends_at) for run in runs]
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


def _address(run: PlannedRun) -> tuple[str, str, str, int]:
    """A run by its names, for an experiment with its functions cannot be sent."""
    return run.experiment.label, run.setting.name, run.budget, run.seed


def _make_run(
    label: str, setting: str, budget: str, seed: int, out: Path, machine: Machine, ends_at: float
) -> list[str]:
    """In a process of its own: make one run; what there is to say about it."""
    experiment = EXPERIMENTS[label]
    chosen = next(found for found in experiment.settings if found.name == setting)
    run = PlannedRun(experiment=experiment, setting=chosen, budget=budget, seed=seed)
    said: list[str] = []
    perform_run(run, out, machine, Visit.until(ends_at, said.append))
    return said
