"""The runs of an experiment over the machines of a Ray cluster (optional extra `cluster`)."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torchcaps.core import UserError, need
from torchcaps.storage import write_json
from torchcaps.train import Machine

from ..plan import Experiment, PlannedRun
from ..records import Budget
from .make import LEFT_BY_RUNS, RunCounts, count_runs, missing_runs, perform_run
from .visit import Visit

_RETRIES = 3  # of a run whose worker was killed
Files = dict[str, str]


def run_on_cluster(
    experiment: Experiment,
    out: Path,
    machine: Machine,
    *,
    address: str,
    budget: Budget = "full",
    seeds: int | None = None,
    visit: Visit | None = None,
) -> RunCounts:
    """Make the missing runs as tasks of a Ray cluster; return how many are done, failed and left.

    A task trains in a folder of its worker and hands back its result, which is written below `out` as soon as
    it arrives. A killed worker loses only the run it was at, which another worker begins anew.

    Args:
        experiment: What to run.
        out: Folder of the runs, on this machine.
        machine: Device and data folder as the workers see them.
        address: Of the cluster; "local" starts one on this machine.
        budget: Of the runs.
        seeds: Of each setting.
        visit: The time there is, and how many runs share a GPU.
    """
    ray = _connect(address)
    visit = visit or Visit()
    planned = list(experiment.planned(budget, seeds))
    runs = missing_runs(planned, out)
    try:
        at_once = _runs_per_gpu(ray, experiment, machine, visit)
        task = ray.remote(num_cpus=1, num_gpus=1 / at_once if at_once else 0, max_retries=_RETRIES)(_make_run)
        pending = {task.remote(run, machine, visit.ends_at, max(1, at_once)): run for run in runs}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            _receive(ray, done, pending.pop(done), out, visit)
    finally:
        ray.shutdown()
    return count_runs(planned, out)


def _connect(address: str) -> Any:
    ray = need("ray", "a cluster")
    place = None if address == "local" else address
    try:
        ray.init(address=place, include_dashboard=False if place is None else None, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"there is no Ray cluster at {address}: {error}") from error
    return ray


def _runs_per_gpu(ray: Any, experiment: Experiment, machine: Machine, visit: Visit) -> int:
    """Runs that share a GPU of the cluster; 0 where it has none, and a run takes a core."""
    has_gpu = machine.device in ("auto", "cuda") and ray.cluster_resources().get("GPU", 0) > 0
    return (visit.at_once or experiment.at_once) if has_gpu else 0


def _make_run(run: PlannedRun, machine: Machine, ends_at: float, concurrency: int) -> Files:
    """On a worker: the files that a run leaves, none where time was up or its data is missing."""
    with TemporaryDirectory() as scratch:
        perform_run(run, Path(scratch), machine, Visit.until(ends_at), concurrency=concurrency)
        folder = run.folder(Path(scratch))
        left = (folder / name for name in LEFT_BY_RUNS)
        return {path.name: path.read_text(encoding="utf-8") for path in left if path.is_file()}


def _receive(ray: Any, reference: Any, run: PlannedRun, out: Path, visit: Visit) -> None:
    try:
        files: Files = ray.get(reference)
    except ray.exceptions.RayError as error:
        visit.on_run(f"{run.name} was lost {_RETRIES + 1} times: {type(error).__name__}")
        return
    for name, text in files.items():
        write_json(run.folder(out) / name, json.loads(text))
    visit.on_run(f"{run.name}: {', '.join(files) or 'no result, for lack of time or data'}")
