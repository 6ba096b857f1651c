"""Files beside the weights, which a command printed of a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchcaps.core import UserError


@contextmanager
def reading(file: str, *, printed_by: str) -> Iterator[None]:
    """What is missing from the file, or of another kind, becomes one error that names file and command."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file} is not what {printed_by}; write it again") from error
