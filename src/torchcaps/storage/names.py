"""Names of files that are written for others, and of those that others write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path

from torchcaps.core import UserError


def distinct_stems(names: Sequence[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """A file name for each of `names`, without its ending; one that is taken gets a number.

    Large and small letters count as the same, since they do on some disks.
    """
    stems: list[str] = []
    taken = set(reserved)
    for name in names:
        stem = Path(name).stem.replace(":", "-")
        candidates = chain([stem], (f"{stem}~{number}" for number in count(2)))
        stems.append(next(candidate for candidate in candidates if candidate.casefold() not in taken))
        taken.add(stems[-1].casefold())
    return stems


def expanded(path: Path | str) -> Path:
    """A path with the home folder in place of `~`."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # there is no such user, or the system does not tell
        raise UserError(f"{path}: there is no such home folder; write the path in full") from error
