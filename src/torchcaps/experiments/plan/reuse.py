"""Runs of one experiment that others use too: they are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.storage import read_json, write_json
from torchcaps.train import Machine, Watcher

from .experiment import Experiment, Perform, PlannedRun
from .setting import Setting


def setting_of(tables: Sequence[Experiment], name: str) -> tuple[Experiment, Setting]:
    """The table that has a setting of that name, and the setting."""
    for table in tables:
        for setting in table.settings:
            if setting.name == name:
                return table, setting
    raise UserError(f"none of {', '.join(table.label for table in tables)} has a setting {name!r}")


def make_reused(
    run: PlannedRun, tables: Sequence[Experiment], out: Path, machine: Machine, watcher: Watcher
) -> Path:
    """The folder of the run that `run` reuses; it is made first if it is not there."""
    table, setting = setting_of(tables, run.setting.reuses)
    source = replace(run, experiment=table, setting=setting)
    if not (source.folder(out) / "result.json").is_file():
        table.perform(source, out, machine, watcher)
    return source.folder(out)


@dataclass(frozen=True)
class TakeOver:
    """Performs a run by copying the result of the one it reuses; weights are not needed.

    A run that reuses none is made by `rest`.
    """

    tables: tuple[Experiment, ...]
    rest: Perform

    def __call__(self, run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> None:
        """Write what the other run found."""
        if not run.setting.reuses:
            self.rest(run, out, machine, watcher)
            return
        place = make_reused(run, self.tables, out, machine, watcher)
        write_json(run.folder(out) / "result.json", read_json(place / "result.json"))
