"""The progress bar of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressBar:
    """Shows images per second, the time left, one line per epoch, and each finding once."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            transient=True,
        )
        self._task: Any = None
        self._epochs = 0
        self._told: set[str] = set()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:  # a bar that never started would print an empty line
            self._bar.stop()  # also after an early stop or an error: a live bar hides the cursor

    def run_started(self, facts: dict[str, Any]) -> None:
        """Say what is trained."""
        self._epochs = facts["epochs"]
        self._bar.console.print(
            f"{facts['parameters']:,} parameters, {facts['images']:,} images, {facts['epochs']} epochs",
            highlight=False,
        )

    def epoch_started(self, epoch: int, steps: int) -> None:
        """Start the bar, which runs over all epochs."""
        if self._task is None:
            total = steps * self._epochs
            self._task = self._bar.add_task("", total=total, completed=steps * epoch, speed="")
            self._bar.start()
        self._bar.update(self._task, description=f"epoch {epoch + 1}/{self._epochs}")

    def step_done(self, images: int) -> None:
        """Advance by one step."""
        speed = self._bar.tasks[0].speed
        text = f"{speed * images:,.0f} img/s" if speed else ""
        self._bar.update(self._task, advance=1, speed=text)

    def epoch_done(self, row: dict[str, Any]) -> None:
        """Print the epoch's numbers above the bar."""
        sparsity = f"sparsity {row['sparsity']:.1%}  " if "sparsity" in row else ""
        self._bar.console.print(
            f"epoch {row['epoch'] + 1:>3}  loss {row['train_loss']:.4f}  "
            f"validation loss {row['val_loss']:.4f}  "
            f"accuracy {row['val_accuracy']:.2%}  {sparsity}{row['images_per_second']:,.0f} img/s",
            highlight=False,
            soft_wrap=True,  # one line an epoch in a log file, however wide
        )
        self._tell(row.get("findings", ()))

    def _tell(self, findings: Iterable[str]) -> None:
        for finding in findings:
            problem = finding.partition(":")[0]  # the numbers behind it change from epoch to epoch
            if problem not in self._told:
                self._told.add(problem)
                self._bar.console.print(f"health: {finding}", highlight=False, markup=False)


class CandidateBar:
    """Shows how many candidates of a search are scored, the best so far, and the time left."""

    def __init__(self, *, is_shown: bool = True) -> None:
        self._bar = Progress(
            TextColumn("candidates"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[best]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            transient=True,
            disable=not is_shown,
        )

    def __enter__(self) -> CandidateBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.tasks:
            self._bar.stop()

    def candidate_done(self, done: int, planned: int, best: float) -> None:
        """Advance to `done`; the first call starts the bar."""
        if not self._bar.tasks:
            self._bar.add_task("", total=planned, best="")
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=done, best=f"best accuracy {best:.2%}")
