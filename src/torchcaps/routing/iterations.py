"""How often the routings of a network iterate; it can be changed after the network was built."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import TypeAlias

from torch import nn

from torchcaps.core import UserError

from .api import require_iterations

Iterations: TypeAlias = int | Mapping[str, int]  # of all routings, or of each by name


def iterations_of(network: nn.Module, pattern: str = "*") -> dict[str, int]:
    """How often the routings that iterate do so, by name, of those whose names match."""
    counts = {name: getattr(module, "iterations", None) for name, module in network.named_modules()}
    return {
        name: count for name, count in counts.items() if isinstance(count, int) and fnmatch(name, pattern)
    }


def set_iterations(network: nn.Module, iterations: Iterations, pattern: str = "*") -> None:
    """Let the routings whose names match iterate this often, or as often as stands at their names."""
    for name in iterations_of(network, pattern):
        if isinstance(iterations, Mapping) and name not in iterations:
            raise UserError(f"iterations must name each routing: {name!r} is not among {list(iterations)}")
        count = iterations[name] if isinstance(iterations, Mapping) else iterations
        network.get_submodule(name).iterations = require_iterations(count)  # type: ignore[assignment]
