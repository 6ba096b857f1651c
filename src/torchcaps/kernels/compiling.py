"""How functions are compiled for the processor, at their first use; other processes read what was compiled.

Numba asks whether the file of a function has changed, not those that it imports. So a function is kept under
a name that changes with any file of compiled functions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

from torchcaps.core import digest_of


def digest_of_sources(folder: Path) -> str:
    """A short text that depends on all files of compiled functions in a folder and below it."""
    files = sorted(folder.rglob("compil*.py"))
    return digest_of("\0".join(path.read_text(encoding="utf-8") for path in files)).hex()


_SOURCES = digest_of_sources(Path(__file__).parent)


def compiled(function: Callable[..., Any]) -> Any:
    """A function as machine code that adds in the order in which it says so."""
    return _compile(function, {"contract"})


def compiled_sums(function: Callable[..., Any]) -> Any:
    """A function as machine code that adds several numbers at a time, in any order."""
    return _compile(function, {"contract", "reassoc"})


def _compile(function: Callable[..., Any], fastmath: set[str]) -> Any:
    function.__qualname__ += f"_{_SOURCES}"
    return njit(nogil=True, cache=True, fastmath=fastmath, error_model="numpy")(function)
