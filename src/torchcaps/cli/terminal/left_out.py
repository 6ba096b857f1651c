"""Images that are not read because of how their names end, told on the error stream."""

from __future__ import annotations

from pathlib import Path

import typer


def say_left_out(folder: Path) -> None:
    """Count those in a folder and below it, if any, and name one."""
    from torchcaps.core import counted
    from torchcaps.data.folders import SUFFIXES, skipped_images

    if skipped := skipped_images(folder):
        typer.echo(
            f"torchcaps: {counted(len(skipped), 'image')} in {folder} left out, such as {skipped[0]}: "
            f"those of a folder end in {', '.join(sorted(SUFFIXES))}",
            err=True,
        )


def say_left_out_of(data: str, data_dir: Path | None) -> None:
    """As `say_left_out`, for a dataset; only that of a folder can have such images."""
    from torchcaps.data import FOLDER_PREFIX, resolve_data_dir
    from torchcaps.data.folders import parse_folder_name

    if data.startswith(FOLDER_PREFIX):
        say_left_out(parse_folder_name(data, resolve_data_dir(data_dir)).root)
