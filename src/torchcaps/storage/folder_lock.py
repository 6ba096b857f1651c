"""A lock on a folder: what several processes would write side by side, one writes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchcaps.core import UserError

_LOCK = ".turn.lock"  # never removed: who waits for it and who makes a new one would both go on


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """While open, other processes and threads that ask for the same folder wait.

    The turn of a killed process ends with it. On Windows nobody waits; files are still written whole.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from error
    with file:  # closing it ends the turn
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
