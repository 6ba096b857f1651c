"""Capsule networks for PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inspection import inspect
    from .models import create_model, list_models
    from .routing import list_routings

__version__ = "0.1.0"
__all__ = ["__version__", "create_model", "inspect", "list_models", "list_routings"]

_HOMES = {
    "create_model": "models",
    "inspect": "inspection",
    "list_models": "models",
    "list_routings": "routing",
}


def __getattr__(name: str) -> Any:
    # torch takes over a second to import: `torchcaps --help` must not wait for it
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
