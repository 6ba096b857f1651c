"""Mistakes a user can mend; the command line prints them as one line, without a traceback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

_Text = TypeVar("_Text", bound=str)


class UserError(ValueError):
    """Something given to the library is wrong; the message says what, and what to do."""


class UnknownNameError(UserError, KeyError):
    """A name that nothing is registered under."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes


class MissingDataError(UserError, FileNotFoundError):
    """A dataset or file that is not where it was looked for."""


_MOST_NAMED = 20  # names that one message lists
_LONGEST_REASON = 120  # characters; some errors quote the bytes of the file


def unknown_name(kind: str, name: str, known: Iterable[str], advice: str = "") -> UnknownNameError:
    """The error for a misspelt `name`: the near ones, or when none is near `advice`, or else all of them."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=5)  # YAML reads a number as one
    otherwise = advice or f"known: {listed(names)}"
    hint = f"did you mean {', '.join(near)}?" if near else otherwise
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")


def require_choice(name: str, value: _Text, choices: Collection[str]) -> _Text:
    """`value` itself where it is one of `choices`, else an error that lists them."""
    if value not in choices:
        raise UserError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value


def first_line(error: BaseException) -> str:
    """The first line of a message: those of PyTorch and of the readers of files go on with details."""
    return str(error).partition("\n")[0]


def reason_of(error: BaseException) -> str:
    """What a reader of files has to say of a damaged one, in few words; the kind of an error without any."""
    reason = first_line(error) or type(error).__name__
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON].rstrip()} ..."


def listed(names: Sequence[str]) -> str:
    """Names in a row; of many only the first."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}" or "none"
