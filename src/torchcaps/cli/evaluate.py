"""`torchcaps eval`: how well a run does on a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json, RunFolder, choose_device
from .show import print_json, print_table

if TYPE_CHECKING:
    from torchcaps.train import AnyTask

_MOST_CLASSES = 12  # of a table that a terminal can show


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
    """Loss and metrics of a run, and those of each class."""
    from torchcaps.train import evaluate_run, inspect_run, load_run

    loaded = load_run(run, choose_device(device))
    result = evaluate_run(loaded, split, data_name=data, data_dir=data_dir)
    report = inspect_run(loaded, split, data_name=data, data_dir=data_dir) if health else None
    if json:
        print_json(result | ({} if report is None else {"health": report.as_json()}))
        return
    show_result(result, loaded.task)
    if report is not None:
        typer.echo(f"\n{report}")


def show_result(result: dict[str, Any], task: AnyTask) -> None:
    """Print loss, metrics and tables of an evaluation."""
    typer.echo(f"{result['data']} {result['split']}: {result['images']:,} images")
    found = [f"{each.title} {each.format(result[each.name])}" for each in task.metrics]
    typer.echo(", ".join([*found, f"loss {result['loss']:.5f}"]))
    for name, accuracy in result.get("class_accuracy", {}).items():
        typer.echo(f"  {name:<12} " + ("no images" if accuracy is None else f"{accuracy:.2%}"))
    if "class_accuracy" in result:
        _print_confusion(list(result["class_accuracy"]), result["confusion"])
    for name, values in result.get("classes", {}).items():
        typer.echo(f"  {name:<12} " + "  ".join(_value(task, key, value) for key, value in values.items()))


def _print_confusion(classes: list[str], counts: list[list[int]]) -> None:
    """A row for each true class, a column for each class it was read as."""
    if len(classes) > _MOST_CLASSES:
        return
    typer.echo()
    print_table(
        [
            {"true class, read as": name, **dict(zip(classes, row, strict=True))}
            for name, row in zip(classes, counts, strict=True)
        ]
    )


def _value(task: AnyTask, key: str, value: float | None) -> str:
    metric = task.metric(key)
    return f"{metric.title} " + ("none" if value is None else metric.format(value))
