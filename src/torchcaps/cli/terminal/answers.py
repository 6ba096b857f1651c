"""Image files that a network answers for, one after the other, and those that are left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .show import print_json

if TYPE_CHECKING:
    from torchcaps.core import UserError
    from torchcaps.train import Answer


def found_images(names: Sequence[str]) -> list[str]:
    """The image files that names, folders and patterns stand for; those left out of a folder are told."""
    from torchcaps.data import find_images

    found = find_images(names)
    for folder in (Path(name) for name in names if os.path.isdir(name)):
        _say_left_out(folder)
    return found


def _say_left_out(folder: Path) -> None:
    """Count the images below a folder that are not read for the ends of their names, and name one."""
    from torchcaps.core import counted
    from torchcaps.data.folders import SUFFIXES, skipped_images

    if skipped := skipped_images(folder):
        typer.echo(
            f"torchcaps: {counted(len(skipped), 'image')} in {folder} left out, such as {skipped[0]}: "
            f"those of a folder end in {', '.join(sorted(SUFFIXES))}",
            err=True,
        )


def say_left_out_of(data: str, data_dir: Path | None) -> None:
    """The same for a dataset; only that of a folder can have such images."""
    from torchcaps.data import FOLDER_PREFIX, resolve_data_dir
    from torchcaps.data.folders import parse_folder_name

    if data.startswith(FOLDER_PREFIX):
        _say_left_out(parse_folder_name(data, resolve_data_dir(data_dir)).root)


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
            verb = "has" if len(self.names) == 1 else "have"
            typer.echo(f"torchcaps: {len(self.names)} of {self._total} images {verb} no answer", err=True)
            raise typer.Exit(1)


def print_answers(
    names: Sequence[str],
    out: Path | None,
    answer: Callable[[Path], Answer],
    shown: Callable[[Answer], Answer] = lambda found: found,
    *,
    json: bool,
) -> None:
    """Print what is said of image files, as `shown` has it; an unusable file does not stop the others."""
    from torchcaps.core import UserError
    from torchcaps.storage import distinct_stems

    rows, passed_over = [], PassedOver(len(names))
    for name, stem in _tracked(list(zip(names, distinct_stems(names), strict=True)), is_shown=json):
        path = Path(name)
        try:
            found = answer(path)
        except UserError as error:
            passed_over.add(name, error)
            continue
        files = [] if out is None else _save(found, out, stem)
        found = shown(found)
        rows.append({"image": str(path), **found.row, **({"files": files} if files else {})})
        if not json:
            typer.echo(f"{path}: {found.words}" + "".join(f"\n  {file}" for file in files))
    if json:
        print_json(rows)
    passed_over.end()


def _tracked(files: list[tuple[str, str]], *, is_shown: bool) -> Iterable[tuple[str, str]]:
    """The files, with a bar on the error stream of a terminal; printed lines need none."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    is_off = not (is_shown and len(files) > 1 and console.is_terminal)
    return track(files, "predicting", console=console, transient=True, disable=is_off)


def _save(answer: Answer, out: Path, stem: str) -> list[str]:
    from torchcaps.storage import write_png

    files = []
    for name, picture in answer.pictures.items():
        target = out / f"{stem}-{name}.png"
        write_png(target, picture)
        files.append(str(target))
    return files
