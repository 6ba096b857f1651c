"""`torchcaps predict`: classes of image files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DataDir, Device, Json, RunFolder, choose_device
from .show import print_json


def command(
    run: RunFolder,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Image files.")],
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Classify image files with a trained run."""
    from torchcaps.train import load_run, predict

    rows = predict(load_run(run, choose_device(device)), images, data_dir)
    if json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['image']}: {row['class']} (activation {row['activation']:.3f})")
