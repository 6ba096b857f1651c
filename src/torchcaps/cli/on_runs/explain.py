"""`torchcaps explain`: why a run reads an image as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..terminal import (
    CountBar,
    DataDir,
    Device,
    Images,
    Json,
    LevelsOption,
    PassedOver,
    RunFolder,
    choose_device,
    found_images,
    levels_for,
    print_json,
    working,
    writable,
)


def command(
    run: RunFolder,
    images: Images,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", file_okay=False, help="Folder for pages, drawings and JSON; default RUN/explain."
        ),
    ] = None,
    explorer: Annotated[
        bool,
        typer.Option(
            "--explorer",
            help="Write one interactive page of all images instead, explorer.html, which needs no server.",
        ),
    ] = False,
    levels: LevelsOption = "even",
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write a page that says why an image got its class.

    It shows the parse tree, where the network looked, and how typical that is. Of several images, those that
    cannot be read are named and passed over, and the exit code is 1.
    """
    from torchcaps.explorer import write_explorer
    from torchcaps.pages import explain_images
    from torchcaps.parse import Explainer
    from torchcaps.train import load_run
    from torchcaps.zoo import output_folder

    out = out or output_folder(run) / "explain"
    if run.is_dir():  # of a photograph in its place, `load_run` says more
        writable(out)
    loaded = load_run(run, choose_device(device))
    explainer = Explainer(loaded, levels=levels_for(loaded, levels, data_dir), data_dir=data_dir)
    names = found_images(images)
    passed_over = PassedOver(len(names))
    if explorer:
        page = out / "explorer.html"
        with working("explaining images"):
            size = write_explorer(explainer, names, page, passed_over.add)
        if size:
            _say_explorer([name for name in names if name not in passed_over.names], page, size, json=json)
    else:
        with CountBar("explaining images") as bar:
            rows = explain_images(explainer, names, out, bar.reached, passed_over.add)
        if json:
            print_json(rows)
        else:
            _say_pages(rows, out)
    passed_over.end()


def _say_pages(rows: list[dict[str, Any]], out: Path) -> None:
    for row in rows:
        details = f"activation {row['activation']:.3f}{_runner_up(row)}{_rank(row)}"
        more = [row[key] for key in ("hint", "preparation") if row[key] is not None]
        typer.echo("; ".join([f"{row['image']}: {row['class']} ({details})", *more]))
        typer.echo(f"  {next(file for file in row['files'] if file.endswith('.html'))}")
    if len(rows) > 1:
        typer.echo(f"all of them: {out / 'index.html'}")


def _say_explorer(names: list[str], path: Path, size: int, *, json: bool) -> None:
    from torchcaps.core import counted

    if json:
        print_json({"images": names, "file": str(path), "bytes": size})
    else:
        typer.echo(f"{path}: {counted(len(names), 'image')}, {size / 1e6:.1f} MB; open it in a browser")


def _runner_up(row: dict[str, Any]) -> str:
    second = row["runner_up"]
    return "" if second is None else f"; next {second}, {row['activations'][second]:.3f}"


def _rank(row: dict[str, Any]) -> str:
    from torchcaps.parse import rank_in_words

    usual = row["typicality"]
    if usual is None or usual["share_less_surprising"] is None:
        return ""
    rank = rank_in_words(usual["share_less_surprising"], usual["compared_with"])
    words = f"; stranger than {rank} validation images"
    if row["quantized_class"] == row["class"]:
        return f"{words} of its class"
    return f"{words} read as {row['quantized_class']}, as it is itself with quantized couplings"
