"""Runs of one table that stand behind other tables and figures too: looked at again, never made twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchcaps.core.errors import UserError
from torchcaps.data import LabelledImages
from torchcaps.storage import read_json, write_json
from torchcaps.train import Machine, Pipeline, Run, Watcher, load_run, load_split
from torchcaps.train.session import launch

from ..plan import Experiment, PlannedRun, Setting, leave_result

SHARED_RUNS = (
    "The networks are those of {}, and their hours are counted there; where only a result was kept, the same "
    "recipe and seed were trained again."
)


@dataclass(frozen=True)
class Trained:
    """A network of a table, with its test images."""

    run: Run
    data: LabelledImages
    pipeline: Pipeline
    data_dir: Path | None

    def at_epoch(self, epoch: int) -> Run:
        """The same network after an epoch, counted from one."""
        return load_run(self.run.folder, self.data.labels.device, weights=f"epoch-{epoch}")


Look = Callable[[Trained, PlannedRun], tuple[dict[str, Any], dict[str, Any]]]


def setting_of(tables: Sequence[Experiment], name: str) -> tuple[Experiment, Setting]:
    """The table that has a setting of that name, and the setting."""
    for table in tables:
        for setting in table.settings:
            if setting.name == name:
                return table, setting
    raise UserError(f"none of {', '.join(table.label for table in tables)} has a setting {name!r}")


def again(tables: Sequence[Experiment], of: str, **changes: Any) -> Setting:
    """A setting of another experiment that goes back to the runs of setting `of`.

    Without changes it has the same name. Options come on top of where to look; figures of the thesis do
    not come along.
    """
    options = {"of": of, **changes.pop("options", {})}
    return replace(setting_of(tables, of)[1], **{"thesis": None, **changes}, options=options)


def vary(
    tables: Sequence[Experiment], of: str, name: str, changes: tuple[str, ...], **fields: Any
) -> Setting:
    """A setting that is trained as `of` is, with further changes that hold in every budget."""
    setting = setting_of(tables, of)[1]
    budgets = {budget: (*those, *changes) for budget, those in setting.budgets.items()}
    changed = (*setting.changes, "keep_epochs=[]", *changes)
    return replace(setting, name=name, changes=changed, budgets=budgets, **{"thesis": None, **fields})


def made(
    run: PlannedRun, tables: Sequence[Experiment], folder: Path, machine: Machine, watcher: Watcher
) -> Path:
    """Where the run lies that `run` goes back to; it is made first if it is not there."""
    table, setting = setting_of(tables, run.setting.options["of"])
    source = replace(run, experiment=table, setting=setting)
    place = source.folder(folder.parents[2])
    if not (place / "result.json").is_file():
        table.perform(source, place, machine, watcher)
    return place


@dataclass(frozen=True)
class LookAgain:
    """Performs a run by looking at the network of another; `look` gives metrics and a curve."""

    look: Look
    tables: tuple[Experiment, ...]

    def __call__(self, run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
        """Leave the result of one look."""
        place = made(run, self.tables, folder, machine, watcher)
        device = launch(machine).device
        network = load_run(place / "training", device)
        data, pipeline = load_split(network.recipe.data, "test", machine.data_dir, device)
        metrics, curve = self.look(Trained(network, data, pipeline, machine.data_dir), run)
        parameters = sum(parameter.numel() for parameter in network.model.parameters())
        facts = {"parameters": parameters, "seconds": 0.0, "precision": machine.precision}
        return leave_result(run, folder, device, result={"metrics": metrics, "curve": curve, **facts})


@dataclass(frozen=True)
class TakeOver:
    """Performs a run by taking over the result of another, weights not needed; others it leaves to `rest`."""

    tables: tuple[Experiment, ...]
    rest: Callable[[PlannedRun, Path, Machine, Watcher], dict[str, Any]]

    def __call__(self, run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
        """Leave what the other run found."""
        if not run.setting.goes_back:
            return self.rest(run, folder, machine, watcher)
        place = made(run, self.tables, folder, machine, watcher)
        found: dict[str, Any] = read_json(place / "result.json")
        write_json(folder / "result.json", found)
        return found
