"""`torchcaps predict`: classes of image files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DataDir, Device, Json, choose_device
from .show import print_json


def command(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a run, or exported .onnx or .pt2 file."),
    ],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Image files.")],
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Classify image files with a trained run, or with a file that torchcaps export wrote."""
    from torchcaps.train import is_exported, load_predictor, predict

    place = device if is_exported(run) else choose_device(device)
    rows = predict(load_predictor(run, place, data_dir), images)
    if json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['image']}: {row['class']} (activation {row['activation']:.3f})")
