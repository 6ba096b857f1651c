"""How parts of a network are built and called: without memory, in evaluation mode, in full precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


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


@contextmanager
def sketching() -> Iterator[None]:
    """While open, modules are built without memory for their weights and without the numbers in them."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Skips normal numbers: to draw them without memory, PyTorch imports its compiler, over a second."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else kwargs["tensor"]
        return (torch.empty if func is torch.randn else func)(*args, **kwargs)


def without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """A region in which products keep the dtype of their inputs, on the device of `tensor`.

    The device `meta`, whose tensors have shapes and no data, knows no autocast. Autocast is switched off only
    where it is on, because that takes longer than to ask, and every layer and routing does it.
    """
    kind = tensor.device.type
    is_cast = kind != "meta" and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if is_cast else nullcontext()
