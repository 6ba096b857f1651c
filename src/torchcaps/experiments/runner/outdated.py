"""Outdated results: the recipe of their setting or its data has changed since they were made."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from ..plan import PlannedRun, made_with, planned_with
from ..records import read_result


def outdated_runs(planned: Iterable[PlannedRun], out: Path) -> list[PlannedRun]:
    """The planned runs whose result was made with another recipe, or of other data, than they have now."""
    return [run for run in planned if (run.folder(out) / "result.json").is_file() and _is_outdated(run, out)]


def set_aside(planned: Iterable[PlannedRun], out: Path) -> int:
    """Rename the folders of outdated runs, so that the runs are missing; return how many there were."""
    outdated = outdated_runs(planned, out)
    for run in outdated:
        folder = run.folder(out)
        aside = folder.parent.with_name(f"{run.budget}-older") / folder.name
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(exist_ok=True)
        folder.rename(aside)
    return len(outdated)


def _is_outdated(run: PlannedRun, out: Path) -> bool:
    result = read_result(run.folder(out) / "result.json")
    return made_with(result.recipe, result.data_protocol) != planned_with(run)
