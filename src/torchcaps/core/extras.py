"""Optional modules, which the extras of the package install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import UserError


def need(name: str, extra: str, purpose: str = "this") -> Any:
    """A module, or an error that says what needs it and names the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(f'{purpose} needs {package}: pip install "torchcaps[{extra}]"') from error
