"""`torchcaps predict`: what a trained network says of image files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json, choose_device
from .show import print_json

if TYPE_CHECKING:
    from torchcaps.train import Answer


def command(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a run, or exported .onnx or .pt2 file."),
    ],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Image files.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for pictures: the mask and an overlay of a segmentation."),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Open a .pt2 file, which can hold code, because you know who wrote it."),
    ] = False,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Let a trained run, or a file that torchcaps export wrote, answer for image files."""
    from torchcaps.train import answers, is_exported, load_predictor

    place = device if is_exported(run) else choose_device(device)
    rows = []
    for path, answer in answers(load_predictor(run, place, data_dir, trust=trust), images):
        files = [] if out is None else _save(answer, path, out)
        rows.append({"image": str(path), **answer.row, **({"files": files} if files else {})})
        if not json:
            typer.echo(f"{path}: {answer.words}" + "".join(f"\n  {file}" for file in files))
    if json:
        print_json(rows)


def _save(answer: Answer, path: Path, out: Path) -> list[str]:
    """Write the pictures of an answer, named after the image."""
    from torchcaps.storage import write_atomically

    files = []
    for name, picture in answer.pictures.items():
        target = out / f"{path.stem}-{name}.png"

        def write(draft: Path, picture: Any = picture) -> None:
            picture.save(draft, format="PNG")

        write_atomically(target, write)
        files.append(str(target))
    return files
