"""Image files that a network answers for, one after the other, with the pictures of its answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from torchcaps.core import UserError
    from torchcaps.train import Answer


class Answered(NamedTuple):
    """An image file, what the network says of it, and the pictures that were saved."""

    path: Path
    answer: Answer
    saved: list[str]


def found_images(names: Sequence[str]) -> list[str]:
    """The image files that names, folders and patterns stand for; those left out of a folder are told."""
    from torchcaps.core import counted
    from torchcaps.data import find_images
    from torchcaps.data.folders import SUFFIXES, skipped_images

    found = find_images(names)
    for folder in (Path(name) for name in names if os.path.isdir(name)):
        if skipped := skipped_images(folder):
            typer.echo(
                f"torchcaps: {counted(len(skipped), 'image')} in {folder} left out, such as {skipped[0]}: "
                f"those of a folder end in {', '.join(sorted(SUFFIXES))}",
                err=True,
            )
    return found


class PassedOver:
    """Images without an answer, of several: each is named on stderr, and `end` sets the exit code."""

    def __init__(self, total: int) -> None:
        self.names: list[str] = []
        self._total = total

    def add(self, name: str, error: UserError) -> None:
        """Say why `name` has no answer; the only image there is raises its own error."""
        if self._total == 1:
            raise error
        self.names.append(name)
        typer.echo(f"torchcaps: {error}", err=True)

    def end(self) -> None:
        """Exit with 1 where images were passed over."""
        if self.names:
            typer.echo(f"torchcaps: {len(self.names)} of {self._total} images have no answer", err=True)
            raise typer.Exit(1)


class ImageFiles:
    """The files that names, folders and patterns stand for; an unusable one does not stop the others."""

    def __init__(self, names: Sequence[str], out: Path | None) -> None:
        from torchcaps.storage import distinct_stems

        found = found_images(names)
        self._paths, self._stems, self._out = [Path(name) for name in found], distinct_stems(found), out
        self._passed_over = PassedOver(len(found))

    def answered(self, answer: Callable[[Path], Answer], *, has_bar: bool) -> Iterator[Answered]:
        """Each file with its answer, but for those that are passed over."""
        from torchcaps.core import UserError

        for path, stem in self._tracked(has_bar=has_bar):
            try:
                found = answer(path)
            except UserError as error:
                self._passed_over.add(str(path), error)
                continue
            yield Answered(path, found, self._save(found, stem))

    def end(self) -> None:
        """Exit with 1 where files were passed over."""
        self._passed_over.end()

    def _tracked(self, *, has_bar: bool) -> Iterable[tuple[Path, str]]:
        """The files, with a bar on the error stream of a terminal; printed lines need none."""
        from rich.console import Console
        from rich.progress import track

        console, total = Console(stderr=True), len(self._paths)
        is_shown = has_bar and total > 1 and console.is_terminal
        files = zip(self._paths, self._stems, strict=True)
        return track(files, "predicting", total, console=console, transient=True, disable=not is_shown)

    def _save(self, answer: Answer, stem: str) -> list[str]:
        from torchcaps.storage import write_png

        files: list[str] = []
        if self._out is None:
            return files
        for name, picture in answer.pictures.items():
            target = self._out / f"{stem}-{name}.png"
            write_png(target, picture)
            files.append(str(target))
        return files
