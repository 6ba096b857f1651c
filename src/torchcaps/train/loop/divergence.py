"""A loss that is no number: the steps are replayed to say where the first broken value came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from torchcaps.core import UserError

from .kept import KeptRun
from .session import Session


class DivergedError(UserError):
    """The loss stopped being a number."""


def broken_step(run: KeptRun, data_dir: Path | None, epoch: int, step: int) -> DivergedError:
    """The error for a step whose loss is not finite; replays from the last checkpoint, uncaptured."""
    is_continued = run.checkpoint.is_file()
    twin = Session(
        run.session.fabric,
        run.session.recipe,
        data_dir,
        capture=False,
        is_continued=is_continued,
        find_start=run.session.find_start,
    )
    replay = KeptRun(twin, run.out, run.precision)
    if is_continued:
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


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _is_broken(value: object) -> bool:
    return any(t.is_floating_point() and not bool(t.isfinite().all()) for t in _tensors(value))


class NonFiniteFinder:
    """Watches every module of a model while steps are replayed, and names the first broken value."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.found: str | None = None

    def __enter__(self) -> NonFiniteFinder:
        self._hooks: list[RemovableHandle] = [
            module.register_forward_hook(self._check(name or "the model"))
            for name, module in self.model.named_modules()
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _check(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def hook(module: nn.Module, inputs: object, output: object) -> None:
            if self.found is not None or not _is_broken(output):
                return
            if _is_broken(inputs):
                self.found = f"the input of layer {name!r}"
            elif any(_is_broken(parameter) for parameter in module.parameters()):
                self.found = f"the weights of layer {name!r}"
            else:
                self.found = f"the output of layer {name!r}"

        return hook

    def check_gradients(self) -> None:
        """To be called between backward and update."""
        for name, parameter in self.model.named_parameters():
            if self.found is None and parameter.grad is not None and _is_broken(parameter.grad):
                self.found = f"the gradient of {name!r}"


def find_non_finite(model: nn.Module, steps: Iterator[None]) -> str | None:
    """Run `steps`, which yields after each backward pass, until a broken value appears; say where it did."""
    with NonFiniteFinder(model) as finder, torch.enable_grad():
        for _ in steps:
            finder.check_gradients()
            if finder.found is not None:
                break
    return finder.found
