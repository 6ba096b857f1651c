"""Names of files that are written for others, and of those that others write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from torchcaps.core import UserError


def distinct_stems(names: Sequence[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """A file name for each of `names`, without its ending; one that is taken gets a number.

    Large and small letters count as the same, since they do on some disks.
    """
    stems: list[str] = []
    taken = set(reserved)
    numbers: dict[str, Iterator[int]] = {}  # of each stem those that were not tried yet
    for name in names:
        stem = chosen = Path(name).stem.replace(":", "-")
        while chosen.casefold() in taken:
            chosen = f"{stem}~{next(numbers.setdefault(stem.casefold(), count(2)))}"
        stems.append(chosen)
        taken.add(chosen.casefold())
    return stems


def expanded(path: Path | str) -> Path:
    """A path with the home folder in place of `~`."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # there is no such user, or the system does not tell
        raise UserError(f"{path}: there is no such home folder; write the path in full") from error
