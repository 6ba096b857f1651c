"""Runs of one experiment that others use too: they are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.storage import read_json, write_json

from .experiment import Experiment, Job, Perform
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
    source = replace(job, run=replace(job.run, experiment=table, setting=setting))
    if not (source.folder / "result.json").is_file():
        table.perform(source)
    return source.folder


@dataclass(frozen=True)
class TakeOver:
    """Performs a run by copying the result of the one it reuses; weights are not needed.

    A run that reuses none is made by `rest`.
    """

    tables: tuple[Experiment, ...]
    rest: Perform

    def __call__(self, job: Job) -> None:
        """Write what the other run found."""
        if not job.run.setting.reuses:
            self.rest(job)
            return
        place = make_reused(job, self.tables)
        write_json(job.folder / "result.json", read_json(place / "result.json"))
