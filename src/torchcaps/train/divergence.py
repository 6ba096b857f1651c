"""A loss that is no number: the steps are replayed to say where the first broken value came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchcaps.core import UserError

from .diagnose import find_non_finite
from .kept import KeptRun
from .session import Session


class DivergedError(UserError):
    """The loss stopped being a number."""


def broken_step(run: KeptRun, data_dir: Path | None, epoch: int, step: int) -> DivergedError:
    """The error for a step whose loss is not finite; replays from the last checkpoint, uncaptured."""
    twin = Session(run.session.fabric, run.session.recipe, data_dir, capture=False)
    replay = KeptRun(twin, run.out, run.precision)
    if replay.checkpoint.is_file():
        replay.restore()
    place = find_non_finite(twin.network, _repeat(replay, epoch, step))
    where = f"first non-finite value: {place}" if place else "replaying the steps did not reproduce it"
    return DivergedError(
        f"the loss is not finite in step {step + 1} of epoch {epoch + 1}; {where}; {_advice(run)}"
    )


def broken_validation(run: KeptRun) -> DivergedError:
    """The error for an epoch after which the validation loss is not finite."""
    epoch = run.progress.next_epoch + 1
    return DivergedError(f"the validation loss is not finite after epoch {epoch}; {_advice(run)}")


def _advice(run: KeptRun) -> str:
    kept = run.checkpoint
    state = f"last good checkpoint: {kept}" if kept.is_file() else "no checkpoint was written before it"
    return f"{state}; a smaller optim.learning_rate or optim.clip=1 may help"


def _repeat(run: KeptRun, last_epoch: int, last_step: int) -> Iterator[None]:
    """The steps from here to the given one, yielding between backward and update."""
    session = run.session
    for epoch in range(run.progress.next_epoch, last_epoch + 1):
        for number, indices in enumerate(session.epoch(epoch)):
            session.step.backward(indices)
            yield
            session.step.update()
            session.advance()
            if (epoch, number) == (last_epoch, last_step):
                return
