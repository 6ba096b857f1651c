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
        definition: The class or function that an entry stands for; the entry itself by default.
    """

    def __init__(
        self, kind: str, base: type | None = None, definition: Callable[[Entry], object] = lambda entry: entry
    ) -> None:
        self.kind, self.base, self.definition = kind, base, definition
        self._entries: dict[str, Entry] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Decorator that registers what it decorates under `name`; a taken name is an error.

        The same definition may come again, as when a notebook's cell is run twice: the later one counts.
        """

        def add(entry: Registered) -> Registered:
            if name in self._entries and not self._is_defined_again(name, entry):
                raise ValueError(f"{self.kind} {name!r} is already registered")
            if self.base and not (isinstance(entry, type) and issubclass(entry, self.base)):
                raise UserError(
                    f"{self.kind} {name!r} must be a class derived from {self.base.__name__}, got {entry!r}"
                )
            self._entries[name] = entry  # type: ignore[assignment]
            return entry

        return add

    def _is_defined_again(self, name: str, entry: object) -> bool:
        first, second = self.definition(self._entries[name]), self.definition(entry)  # type: ignore[arg-type]
        return _place_of(first) == _place_of(second) is not None

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


def _place_of(definition: object) -> tuple[str, str] | None:
    """The module of a class or a function, and its name in it; None for any other object."""
    name = getattr(definition, "__qualname__", None)
    return None if name is None else (definition.__module__, name)
