"""Signs of life: the bar of a training run, of things that are counted, and of other work."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from ..start import TERMINATED

if TYPE_CHECKING:
    from torchcaps.core import Metric
    from torchcaps.train import StartFacts

_SECONDS_BETWEEN_LINES = 30.0  # where there is no terminal
_FAST = 10.0  # images per second
_SIGNALS = ("SIGTERM", "SIGHUP")  # a system that shuts down, a terminal that is closed


class _Bar:
    """A bar between two texts, with counts and the time left; it is live on a terminal alone.

    Without a terminal, a line every 30 seconds stands for it.
    """

    def __init__(self, before: str, after: str, *, is_shown: bool, stderr: bool = False) -> None:
        # imported here: it takes a fifth of the time in which --help answers
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=stderr)
        self._is_shown = is_shown
        self._line_at = time.monotonic()
        self._bar = Progress(
            TextColumn(before),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(after),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            transient=True,
            disable=not (is_shown and console.is_terminal),
        )

    @property
    def _is_due(self) -> bool:
        """Whether nobody sees the bar, and nothing was said for a while."""
        return self._bar.disable and time.monotonic() - self._line_at >= _SECONDS_BETWEEN_LINES

    def _say(self, words: str) -> None:
        if self._is_shown:
            self._bar.console.print(words, highlight=False, markup=False, soft_wrap=True)
            self._line_at = time.monotonic()


class ProgressBar(_Bar):
    """Shows images per second, the time left, one line per epoch, and each finding once.

    Before, a sign turns while the data are read. While it is open, a signal to end lets the run stop before
    its next epoch, with a checkpoint; so it does where nothing is shown.
    """

    def __init__(self, *, is_shown: bool = True) -> None:
        super().__init__("{task.description}", "{task.fields[speed]}", is_shown=is_shown)
        self._task: Any = None
        self._epochs = 0
        self._metric: Metric | None = None
        self._told: set[str] = set()
        self._handlers: dict[int, Any] = {}
        self._reading = ExitStack()
        self.wants_to_stop = False

    def __enter__(self) -> ProgressBar:
        if self._is_shown:
            self._reading.enter_context(working("reading the data"))
        for name in _SIGNALS:
            if hasattr(signal, name):  # not all systems have both
                number = getattr(signal, name)
                self._handlers[number] = signal.signal(number, self._stop)
        return self

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.wants_to_stop = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reading.close()
        if self._task is not None:  # a bar that never started would print an empty line
            self._bar.stop()  # also after an early stop or an error: a live bar hides the cursor
        if kind is not None:
            _end_if_stopped(kind)

    def _log(self) -> None:
        """Say how far the bar has come, where that is due."""
        if not self._is_due:
            return
        task = self._bar.tasks[0]
        done = f"{task.completed:,.0f} of {task.total:,.0f}"
        speed = f"  {task.fields['speed']}" if task.fields["speed"] else ""
        left = "" if task.time_remaining is None else f"  {timedelta(seconds=int(task.time_remaining))} left"
        self._say(f"{task.description}  {done}{speed}{left}")

    def run_started(self, facts: StartFacts) -> None:
        """Say what is trained."""
        from torchcaps.core import counted

        self._reading.close()
        if self._task is not None:  # another run before this one
            self._bar.remove_task(self._task)
            self._task = None
        self._epochs, self._metric = facts["epochs"], facts["metric"]
        sizes = (facts["parameters"], "parameter"), (facts["images"], "image"), (self._epochs, "epoch")
        self._say(", ".join(counted(*size) for size in sizes))

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
        text = _speed(speed * images) if speed else ""
        self._bar.update(self._task, advance=1, speed=text)
        self._log()

    def epoch_done(self, row: dict[str, Any]) -> None:
        """Print the epoch's numbers above the bar."""
        assert self._metric is not None
        metric = f"{self._metric.title} {self._metric.format(row[f'val_{self._metric.name}'])}"
        sparsity = f"sparsity {row['sparsity']:.1%}  " if "sparsity" in row else ""
        self._say(
            f"epoch {row['epoch'] + 1:>3}  loss {row['train_loss']:.4f}  "
            f"validation loss {row['val_loss']:.4f}  "
            f"{metric}{say_iterations(row)}  {sparsity}{_speed(row['images_per_second'])}"
        )
        for finding in row.get("findings", ()):
            self._tell(finding)

    def _tell(self, finding: str) -> None:
        problem = finding.partition(":")[0]  # the numbers behind it change from epoch to epoch
        if problem not in self._told:
            self._told.add(problem)
            self._say(f"health: {finding}")

    def testing(self, images: int, total: int) -> None:
        """Run the bar over the test images."""
        self._reading.close()
        if self._task is None:
            self._task = self._bar.add_task("", total=total, speed="")
            self._bar.start()
        if self._bar.tasks[0].description != "testing":
            self._bar.reset(self._task, total=total, description="testing", speed="")
        self._bar.update(self._task, advance=images)
        self._log()


def say_iterations(facts: dict[str, Any]) -> str:
    """How often an annealed network routes, in the order of its layers; nothing of another."""
    found = facts.get("iterations", {})
    counts = list(found.values()) if isinstance(found, dict) else [found]
    return f", iterations {', '.join(map(str, counts))}" if counts else ""


def _speed(images: float) -> str:
    """Images per second; a slow network does not seem to stand still."""
    return f"{images:,.0f} img/s" if images >= _FAST else f"{images:.1f} img/s"


def _end_if_stopped(kind: type[BaseException]) -> None:
    from torchcaps.train import StoppedError

    if issubclass(kind, StoppedError):
        raise typer.Exit(TERMINATED) from None


@contextmanager
def working(words: str) -> Iterator[None]:
    """A turning sign with `words` and the seconds so far, on the error stream of a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn(words), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task("", total=None)
        yield


class CountBar(_Bar):
    """Shows on stderr how many things of a kind are done, and the time left."""

    def __init__(self, things: str, *, is_shown: bool = True) -> None:
        self.planned = 0  # as the last call said
        self._things = things
        super().__init__(things, "{task.fields[words]}", is_shown=is_shown, stderr=True)

    def __enter__(self) -> CountBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.tasks and not self._bar.disable:
            self._bar.stop()

    def reached(self, done: int, planned: int, words: str = "") -> None:
        """Advance to `done`; the first call starts the bar."""
        self.planned = planned
        if not self._bar.tasks:
            self._bar.add_task("", total=planned, words="")
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=done, total=planned, words=words)
        if self._is_due:
            self._say(f"{self._things}: {done:,} of {planned:,}  {words}".rstrip())
