"""Where the first value that is not finite appeared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _is_broken(value: Any) -> bool:
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

    def _check(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
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
