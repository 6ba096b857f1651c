"""One registry type for routings, models, losses and datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Generic, TypeVar

from .errors import UserError, unknown_name

Entry = TypeVar("Entry")
Registered = TypeVar("Registered")


class Registry(Generic[Entry]):
    """Maps a public name to the object that builds it.

    Args:
        kind: What the entries are, in messages.
        base: Of entries that are classes, what each must derive from.
    """

    def __init__(self, kind: str, base: type | None = None) -> None:
        self.kind, self.base = kind, base
        self._entries: dict[str, Entry] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Decorator that registers what it decorates under `name`; a taken name is an error.

        The same definition may come again, as when a notebook's cell is run twice: the later one counts.
        """

        def add(entry: Registered) -> Registered:
            if name in self._entries and not _is_same_definition(self._entries[name], entry):
                raise ValueError(f"{self.kind} {name!r} is already registered")
            if self.base and not (isinstance(entry, type) and issubclass(entry, self.base)):
                raise UserError(
                    f"{self.kind} {name!r} must be a class derived from {self.base.__name__}, got {entry!r}"
                )
            self._entries[name] = entry  # type: ignore[assignment]
            return entry

        return add

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            raise unknown_name(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self, pattern: str = "*") -> list[str]:
        """All names that match a shell pattern, in alphabetical order."""
        return sorted(name for name in self._entries if fnmatch(name, pattern))


def _is_same_definition(first: object, second: object) -> bool:
    """Whether two classes or functions have one name in one module."""
    names = [
        (getattr(each, "__module__", None), getattr(each, "__qualname__", None)) for each in (first, second)
    ]
    return names[0] == names[1] and names[0][1] is not None
