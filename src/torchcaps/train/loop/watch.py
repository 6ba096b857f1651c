"""What a run tells those who watch it, and how they stop it; the loop itself prints nothing."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypedDict, runtime_checkable

from torchcaps.core import Metric, Plain


class StoppedError(Exception):
    """A watcher asked a run to stop; it left a checkpoint, and resuming continues it to the same bits."""


class StartFacts(TypedDict):
    """What a run is about to do."""

    parameters: int
    images: int  # that train
    epochs: int  # at most
    metric: Metric  # the leading one of the task


@runtime_checkable
class Watcher(Protocol):
    """Told about the progress of a run, and asked before each epoch whether it should stop."""

    @property
    def wants_to_stop(self) -> bool:
        """Whether the run should end before its next epoch, with `StoppedError`."""
        ...

    def run_started(self, facts: StartFacts) -> None:
        """The model is built and the data is loaded."""
        ...

    def epoch_started(self, epoch: int, steps: int) -> None:
        """An epoch of so many steps begins."""
        ...

    def step_done(self, images: int) -> None:
        """One step has been issued, for so many images."""
        ...

    def epoch_done(self, row: Plain) -> None:
        """An epoch was validated.

        `row` is its line in metrics.jsonl; where the health of the capsules gives cause, "findings" comes
        with it: sentences whose words before the colon name the problem, the same in each epoch.
        """
        ...

    def testing(self, images: int, total: int) -> None:
        """So many more of `total` test images were evaluated."""
        ...


class Silent:
    """A watcher that keeps quiet."""

    @property
    def wants_to_stop(self) -> bool:
        """Never."""
        return False

    def run_started(self, facts: StartFacts) -> None:
        """Do nothing."""

    def epoch_started(self, epoch: int, steps: int) -> None:
        """Do nothing."""

    def step_done(self, images: int) -> None:
        """Do nothing."""

    def epoch_done(self, row: Plain) -> None:
        """Do nothing."""

    def testing(self, images: int, total: int) -> None:
        """Do nothing."""


class TensorBoard(Silent):
    """A watcher that writes each epoch's numbers where TensorBoard finds them."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter  # optional, and slow to import

        self._open = partial(SummaryWriter, str(folder))

    @cached_property
    def _writer(self) -> Any:
        """Opened with the first epoch that is done: a run that is refused leaves no file of events."""
        return self._open()

    def epoch_done(self, row: Plain) -> None:
        """Write one point per number."""
        nested = {f"health/{name}": value for name, value in row.get("health", {}).items()}
        for name, value in (row | nested).items():
            if name != "epoch" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, row["epoch"])
        self._writer.flush()


class Several(Silent):
    """Passes everything on to each of several watchers."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    @property
    def wants_to_stop(self) -> bool:
        """Whether any of them wants it."""
        return any(watcher.wants_to_stop for watcher in self._watchers)

    def run_started(self, facts: StartFacts) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.run_started(facts)

    def epoch_started(self, epoch: int, steps: int) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.epoch_started(epoch, steps)

    def step_done(self, images: int) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.step_done(images)

    def epoch_done(self, row: Plain) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.epoch_done(row)

    def testing(self, images: int, total: int) -> None:
        """Pass it on."""
        for watcher in self._watchers:
            watcher.testing(images, total)
