"""Networks of one table that other tables and figures look at, instead of training them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchcaps.core import Number
from torchcaps.data import LabelledImages
from torchcaps.inspection import count_parameters
from torchcaps.train import Pipeline, Run, load_labelled, load_run

from ..plan import Changes, Experiment, Job, Outcome, Perform, join_changes, make_reused, setting_of
from ..records import Details
from .setting import TreeSetting

SHARED_RUNS = (
    "The networks are those of {}, and their hours are counted there; where only a result was kept, the same "
    "recipe and seed were trained again."
)


@dataclass(frozen=True)
class Trained:
    """A network of a table with its test images, and the setting that looks at it again."""

    run: Run
    setting: TreeSetting
    data: LabelledImages
    pipeline: Pipeline
    data_dir: Path | None

    def at_epoch(self, epoch: int | None) -> Run:
        """The same network after an epoch, counted from one; at its best without one."""
        if epoch is None:
            return self.run
        return load_run(self.run.folder, self.data.labels.device, weights=f"epoch-{epoch}")


Metrics = dict[str, Number]
Look = Callable[[Trained], tuple[Metrics, Details]]


def _tree_setting(tables: Sequence[Experiment], name: str) -> TreeSetting:
    _, setting = setting_of(tables, name)
    assert isinstance(setting, TreeSetting)
    return setting


def reused(tables: Sequence[Experiment], name: str) -> TreeSetting:
    """A setting of another experiment that looks at the runs of the setting `name`.

    It has the same name, and no figures of the thesis.
    """
    return replace(_tree_setting(tables, name), thesis={}, reuses=name)


def varied(tables: Sequence[Experiment], of: str, name: str, changes: Changes) -> TreeSetting:
    """A setting that is trained as `of` is, with further changes that hold in every budget."""
    setting = _tree_setting(tables, of)
    return replace(
        setting,
        name=name,
        thesis={},
        changes=join_changes(setting.changes, {"keep_epochs": []}, changes),
        budgets={budget: join_changes(those, changes) for budget, those in setting.budgets.items()},
    )


def look_again(look: Look, tables: Sequence[Experiment]) -> Perform:
    """Make a run by looking at the network of another; `look` gives metrics and details."""

    def perform(job: Job) -> None:
        setting = job.run.setting
        assert isinstance(setting, TreeSetting)
        network = load_run(make_reused(job, tables) / "training", job.device)
        data, pipeline = load_labelled(network, "test", data_dir=job.data_dir)
        metrics, details = look(Trained(network, setting, data, pipeline, job.data_dir))
        outcome = Outcome(
            metrics=metrics,
            parameters=count_parameters(network.model),
            seconds=0.0,
            precision=job.machine.precision,
            details=details,
        )
        job.leave_result(outcome)

    return perform
