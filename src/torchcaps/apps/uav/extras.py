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


def transform_between(source: str, target: str) -> Any:
    """The function that turns places of one coordinate system into another; x or longitude come first."""
    pyproj = need("pyproj")
    try:
        return pyproj.Transformer.from_crs(source, target, always_xy=True).transform
    except pyproj.exceptions.ProjError as error:
        raise UserError(
            f"there is no way from {source[:80]!r} to {target[:80]!r}: {str(error)[:200]}"
        ) from error
