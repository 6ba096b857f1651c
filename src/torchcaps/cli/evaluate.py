"""`torchcaps eval`: how well a run does on a dataset."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import DataDir, Device, Json, RunFolder, choose_device
from .show import print_json


def command(
    run: RunFolder,
    data: Annotated[str | None, typer.Option("--data", help="Another dataset of the same shape.")] = None,
    split: Annotated[str, typer.Option("--split", help="test, validation or train.")] = "test",
    health: Annotated[
        bool, typer.Option("--health", help="Also show how each routed layer fares on some of the images.")
    ] = False,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Evaluate a run: loss, accuracy, and accuracy per class."""
    from torchcaps.train import evaluate_run, inspect_run, load_run

    loaded = load_run(run, choose_device(device))
    result = evaluate_run(loaded, split, data_name=data, data_dir=data_dir)
    report = inspect_run(loaded, split, data_name=data, data_dir=data_dir) if health else None
    if json:
        print_json(result | ({} if report is None else {"health": report.as_json()}))
        return
    _print(result)
    if report is not None:
        typer.echo(f"\n{report}")


def _print(result: dict[str, Any]) -> None:
    typer.echo(f"{result['data']} {result['split']}: {result['images']:,} images")
    typer.echo(f"accuracy {result['accuracy']:.2%}, loss {result['loss']:.5f}")
    for name, accuracy in result["class_accuracy"].items():
        typer.echo(f"  {name:<12} " + ("no images" if accuracy is None else f"{accuracy:.2%}"))
