"""`torchcaps predict`: what a trained network says of image files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import DataDir, Device, ImageFiles, Images, Json, choose_device, print_json

if TYPE_CHECKING:
    from torchcaps.train import Answer


def command(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Folder of a run, exported .onnx or .pt2 file, or a name from `torchcaps weights list`.",
        ),
    ],
    images: Images,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Show this many classes.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", file_okay=False, help="Folder for pictures: the mask and an overlay of a segmentation."
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Open a .pt2 file, which can hold code, because you know who wrote it."),
    ] = False,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Let a run answer for image files.

    Takes a run folder or a file that torchcaps export wrote. Of several images, those that cannot be read are
    named and passed over, and the exit code is 1.
    """
    from torchcaps.train import is_exported
    from torchcaps.zoo import photo_predictor

    files = ImageFiles(images, out)
    place = device if is_exported(Path(run)) else choose_device(device)
    rows = []
    predictor = photo_predictor(run, place, data_dir, trust=trust)
    for path, answer, saved in files.answered(predictor.answer_file, has_bar=json):
        best = {} if top is None else {"top": _top(answer, top)}
        rows.append({"image": str(path), **answer.row, **best, **({"files": saved} if saved else {})})
        if not json:
            words = answer.words if top is None else _listed(best["top"], answer)
            typer.echo(f"{path}: {words}" + "".join(f"\n  {file}" for file in saved))
    if json:
        print_json(rows)
    files.end()


def _top(answer: Answer, count: int) -> list[dict[str, Any]]:
    from torchcaps.train import top_classes

    return [{"class": name, "activation": value} for name, value in top_classes(answer.row, count)]


def _listed(best: list[dict[str, Any]], answer: Answer) -> str:
    classes = ", ".join(f"{each['class']} {each['activation']:.3f}" for each in best)
    return "; ".join([classes, *(answer.row[key] for key in ("hint", "preparation") if key in answer.row)])
