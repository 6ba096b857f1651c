"""How often the routings of a network iterate, which routing annealing changes after it was built."""

from __future__ import annotations

from torch import nn


def copy_iterations(source: nn.Module, target: nn.Module) -> None:
    """Let each routing of `target` iterate as often as the one of that name in `source`."""
    for name, module in source.named_modules():
        iterations = getattr(module, "iterations", None)
        if isinstance(iterations, int):
            target.get_submodule(name).iterations = iterations  # type: ignore[assignment]
