"""Training and evaluation mode of the parts of a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """While open, the model is in evaluation mode; afterwards each part is in the mode it was in before.

    `model.train(was_training)` would also switch parts that are held in evaluation mode, such as a frozen
    trunk.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
