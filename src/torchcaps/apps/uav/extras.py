"""Libraries of the extra `uav` and of others, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torchcaps.core import UserError


def need(name: str, extra: str = "uav") -> Any:
    """A module, or an error that names the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f'this needs {name.partition(".")[0]}: pip install "torchcaps[{extra}]"') from error
