"""Runs of one experiment that others use too: they are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.storage import read_json, write_json

from .experiment import Experiment
from .job import Job, Perform
from .setting import Setting


def setting_of(tables: Sequence[Experiment], name: str) -> tuple[Experiment, Setting]:
    """The table that has a setting of that name, and the setting."""
    for table in tables:
        for setting in table.settings:
            if setting.name == name:
                return table, setting
    raise UserError(f"none of {', '.join(table.label for table in tables)} has a setting {name!r}")


def make_reused(job: Job, tables: Sequence[Experiment]) -> Path:
    """The folder of the run that the run of `job` reuses; it is made first if it is not there."""
    table, setting = setting_of(tables, job.run.setting.reuses)
    source = replace(job, run=table.run_of(setting, job.run.budget, job.run.seed))
    if not (source.folder / "result.json").is_file():
        source.make()
    return source.folder


def take_over(tables: Sequence[Experiment], rest: Perform) -> Perform:
    """Copy the result, not the weights, of the run that a run reuses; `rest` makes one that reuses none."""

    def perform(job: Job) -> None:
        if job.run.setting.reuses:
            found = read_json(make_reused(job, tables) / "result.json")
            write_json(job.folder / "result.json", found)
        else:
            rest(job)

    return perform
