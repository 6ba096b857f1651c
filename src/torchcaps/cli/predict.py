"""`torchcaps predict`: what a trained network says of image files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json, choose_device
from .show import print_json

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
    images: Annotated[
        list[str], typer.Argument(metavar="IMAGE...", help="Image files, folders of them, or patterns.")
    ],
    top: Annotated[int | None, typer.Option("--top", min=1, help="Show this many classes.")] = None,
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
    """Let a run answer for image files.

    Takes a run folder or a file that torchcaps export wrote.
    """
    from torchcaps.data import find_images
    from torchcaps.train import is_exported
    from torchcaps.zoo import photo_predictor

    paths = [Path(name) for name in find_images(images)]
    place = device if is_exported(Path(run)) else choose_device(device)
    rows = []
    predictor = photo_predictor(run, place, data_dir, trust=trust)
    for path, answer in _tracked(predictor.answers(paths), len(paths), is_shown=json):
        files = [] if out is None else save_pictures(answer, path, out)
        best = {} if top is None else {"top": _top(answer, top)}
        rows.append({"image": str(path), **answer.row, **best, **({"files": files} if files else {})})
        if not json:
            words = answer.words if top is None else _listed(best["top"])
            typer.echo(f"{path}: {words}" + "".join(f"\n  {file}" for file in files))
    if json:
        print_json(rows)


def _tracked(
    found: Iterator[tuple[Path, Answer]], total: int, *, is_shown: bool
) -> Iterable[tuple[Path, Answer]]:
    """The answers, with a bar on the error stream of a terminal; printed lines need none."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    is_shown = is_shown and total > 1 and console.is_terminal
    return track(found, "predicting", total, console=console, transient=True, disable=not is_shown)


def _top(answer: Answer, count: int) -> list[dict[str, Any]]:
    from torchcaps.train import top_classes

    return [{"class": name, "activation": value} for name, value in top_classes(answer.row, count)]


def _listed(best: list[dict[str, Any]]) -> str:
    return ", ".join(f"{each['class']} {each['activation']:.3f}" for each in best)


def save_pictures(answer: Answer, path: Path, out: Path) -> list[str]:
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
