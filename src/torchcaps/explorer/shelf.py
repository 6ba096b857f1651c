"""The networks of the page, each loaded when it is first asked for and kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from torchcaps.core import UserError
from torchcaps.train import load_run
from torchcaps.zoo import load_pretrained

from .given import Choice, Given
from .subject import Reference, Subject
from .tabs import PartsShow, PoseShow

Kept = TypeVar("Kept")


@dataclass
class Shelf:
    """What was given, opened once; several requests may ask for the same thing at the same time."""

    given: Given
    data_dir: Path | None = None
    device: str = "cpu"
    _kept: dict[tuple[str, str | int], Any] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def prepare(self) -> None:
        """Open what somebody would wait for; a damaged run is an error here."""
        for choice in self.given.choices[: max(1, min(2, self.given.first))]:
            self.reference(choice.key)
        named = [] if "parts" in self.given.filled else self.given.tabs.get("parts", [])
        for number in range(len(named)):
            with suppress(UserError):  # the tab says why it has nothing to show
                self.parts(number).show(0)

    def subject(self, key: str) -> Subject:
        """The network of a choice."""
        return self._open(("subject", key), lambda: self._load(self._choice(key)))

    def reference(self, key: str) -> Reference:
        """The trees of images that the network of a choice is compared with; the first call starts it."""
        subject = self.subject(key)
        return self._open(("reference", key), lambda: Reference(subject))

    def poses(self, number: int) -> PoseShow:
        """A run that estimates poses."""
        folder = self._folder("pose", number)
        return self._open(("pose", number), lambda: PoseShow(folder, self.data_dir))

    def parts(self, number: int) -> PartsShow:
        """A run on PartWhole."""
        folder = self._folder("parts", number)
        return self._open(("parts", number), lambda: PartsShow(folder))

    def page(self, kind: str, number: int) -> bytes:
        """The page of a folder that the user gave; nothing else on the disk can be asked for."""
        return self._folder(kind, number).read_bytes()

    def close(self) -> None:
        """End what works in the background."""
        for kept in self._kept.values():
            if isinstance(kept, Reference):
                kept.stop()

    def _choice(self, key: str) -> Choice:
        for choice in self.given.choices:
            if choice.key == key:
                return choice
        raise UserError("There is no such network on this page.")

    def _folder(self, kind: str, number: int) -> Path:
        for name, paths in self.given.tabs.items():
            if name == kind and 0 <= number < len(paths):
                return paths[number]
        raise UserError("There is no such folder on this page.")

    def _load(self, choice: Choice) -> Subject:
        if isinstance(choice.source, Path):
            run = load_run(choice.source, self.device)
        else:
            run = load_pretrained(choice.source, self.device)
        return Subject(run, choice.title, self.data_dir)

    def _open(self, key: tuple[str, str | int], make: Callable[[], Kept]) -> Kept:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            kept: Kept = self._kept[key]
            return kept
