"""Why files and folders cannot be opened, in words that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from torchcaps.core import MissingDataError, UserError

_MOST_NAMED = 10  # bad files that one message lists


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """What the system refuses in the block is an error that a user can mend, said of the file it names."""
    try:
        yield
    except OSError as error:
        if isinstance(error, UserError) or error.errno is None:  # that is not of the system
            raise
        raise unopened(Path(error.filename or path), error) from error


def unopened(path: Path, error: OSError) -> UserError:
    """The error for a path that the system does not open."""
    name = str(path)
    if error.errno == errno.ENAMETOOLONG:
        return UserError(f"{name}: this is too long for the name of a file; is it the name of one?")
    if isinstance(error, FileNotFoundError):
        return _missing(path)
    if isinstance(error, NotADirectoryError):
        above = next((each for each in path.parents if each.is_file()), path.parent)
        return MissingDataError(f"no image at {name}: {above} is a file, not a folder")
    if isinstance(error, IsADirectoryError):
        return UserError(f"{name} is a folder, where an image file is expected; name a file in it")
    if isinstance(error, PermissionError):
        return UserError(
            f"no permission to read {name}; give it with chmod u+r, and u+rx for the folders above it"
        )
    if error.errno == errno.ELOOP:
        return MissingDataError(f"{name} is a link that leads back to itself; remove it, or link to a file")
    return UserError(
        f"{name} cannot be read ({error.strerror or error}); copy it to another disk and try again"
    )


def _missing(path: Path) -> MissingDataError:
    if path.is_symlink():
        return MissingDataError(f"{path} is a link to a file that is not there; remove it, or link to a file")
    return MissingDataError(f"no image at {path}")


def raise_all(problems: Sequence[str]) -> None:
    """One error for all problems; none where there are none."""
    if not problems:
        return
    if len(problems) == 1:
        raise UserError(problems[0])
    listed = "".join(f"\n  {words}" for words in problems[:_MOST_NAMED])
    more = f"\n  and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
    raise UserError(f"{len(problems)} files cannot be used; mend or remove them:{listed}{more}")
