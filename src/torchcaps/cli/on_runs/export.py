"""`torchcaps export`: a trained network as one file for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..terminal import DataDir, Json, RunFolder, print_json, working, writable


class Format(StrEnum):
    """What can be written, and who reads it."""

    onnx = "onnx"
    torch_export = "torch-export"


def command(
    run: RunFolder,
    format: Annotated[
        Format, typer.Option("--format", help="onnx for ONNX Runtime, torch-export for plain PyTorch.")
    ] = Format.onnx,
    out: Annotated[
        Path | None,
        typer.Option("--out", dir_okay=False, help="File to write; default model.onnx or model.pt2 in RUN."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Write the network of a run for other programs.

    It takes normalised images and gives activations and poses.
    """
    from torchcaps.train import export_run, load_run
    from torchcaps.train.export import SUFFIXES
    from torchcaps.zoo import output_folder

    path = out or output_folder(run) / f"model{SUFFIXES[format.value]}"
    writable(path)
    with working("exporting and comparing"):
        written = export_run(load_run(run), path, format.value, data_dir)
    if json:
        print_json(written)
        return
    typer.echo(
        f"{written['path']}: {written['bytes']:,} bytes, images to {', '.join(written['outputs'])}; "
        f"largest difference from the run {written['largest_difference']:.1e}"
    )
