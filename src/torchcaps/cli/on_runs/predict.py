"""`torchcaps predict`: what a trained network says of image files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..terminal import DataDir, Device, Images, Json, choose_device, found_images, print_answers

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
    """Give the answers of a run for image files: classes, masks or rotations.

    Takes a run folder or a file that torchcaps export wrote. Of several images, those that cannot be read are
    named and passed over, and the exit code is 1.
    """
    from torchcaps.train import is_exported
    from torchcaps.zoo import photo_predictor

    names = found_images(images)
    place = device if is_exported(Path(run)) else choose_device(device)
    predictor = photo_predictor(run, place, data_dir, trust=trust)
    print_answers(names, out, predictor.answer_file, partial(_with_top, count=top), json=json)


def _with_top(answer: Answer, count: int | None) -> Answer:
    """The answer with so many of the best classes, in words in place of the best one."""
    from torchcaps.train import top_classes

    if count is None:
        return answer
    best = top_classes(answer.row, count)
    row = {**answer.row, "top": [{"class": name, "activation": value} for name, value in best]}
    more = [answer.row[key] for key in ("hint", "preparation") if key in answer.row]
    words = [", ".join(f"{name} {value:.3f}" for name, value in best), *more]
    return replace(answer, row=row, words="; ".join(words))
