"""`torchcaps eval`: how well runs do on a dataset, or under a suite of changed images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import (
    DataDir,
    Device,
    Json,
    choose_device,
    found_run,
    named_data,
    print_json,
    print_table,
    say_left_out_of,
    working,
    writable,
)

if TYPE_CHECKING:
    from torchcaps.train import AnyTask, Run

_MOST_CLASSES = 12  # of a table that a terminal can show

RunFolders = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Folders that torchcaps train wrote, or names from `torchcaps weights list`.",
        callback=lambda folders: [found_run(folder) for folder in folders],
    ),
]


def command(
    runs: RunFolders,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="Another dataset with the same classes, or a folder of images; photographs of digits are "
            "prepared as by predict.",
            callback=named_data,
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="test, validation or train.")] = "test",
    health: Annotated[
        bool,
        typer.Option("--health", help="Also show whether capsules and couplings of each layer are alive."),
    ] = False,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help="affine, turns, viewpoint, overlap, corruption, photographs or partwhole, on test images.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="With --suite: use this many test images.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            dir_okay=False,
            help="With --suite: draw the runs beside each other, a PNG.",
            callback=writable,
        ),
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure runs: loss and metrics, also of each class; with --suite, accuracy on changed images."""
    from torchcaps.core import UserError
    from torchcaps.zoo import given_name

    if suite is not None:
        if data is not None or split != "test" or health:
            raise UserError(
                "--suite changes the test images of each run; leave --data, --split and --health out"
            )
        _compare(runs, suite, limit=limit, figure=figure, data_dir=data_dir, device=device, json=json)
        return
    if limit is not None or figure is not None:
        raise UserError("--limit and --figure belong to a --suite")
    if data is not None:
        say_left_out_of(data, data_dir)
    results = []
    for folder in runs:
        if len(runs) > 1 and not json:
            typer.echo(f"{given_name(folder)}:" if folder == runs[0] else f"\n{given_name(folder)}:")
        result = _evaluate(folder, data, split, health=health, data_dir=data_dir, device=device, quiet=json)
        results.append(result)
    if json:
        print_json(results[0] if len(results) == 1 else results)


def _evaluate(
    folder: Path,
    data: str | None,
    split: str,
    *,
    health: bool,
    data_dir: Path | None,
    device: str,
    quiet: bool,
) -> dict[str, Any]:
    from torchcaps.train import inspect_run, load_run
    from torchcaps.zoo import evaluate_run, load_photos

    loaded = load_run(folder, choose_device(device))
    with working("evaluating"):
        result = evaluate_run(loaded, split, data_name=data, data_dir=data_dir)
        report = None
        if health:
            report = inspect_run(loaded, split, data_name=data, data_dir=data_dir, load=load_photos)
    if not quiet:
        show_result(result, loaded)
        if report is not None:
            typer.echo(f"\n{report}")
    return result | ({} if report is None else {"health": report.as_json()})


def _compare(
    folders: list[Path],
    suite: str,
    *,
    limit: int | None,
    figure: Path | None,
    data_dir: Path | None,
    device: str,
    json: bool,
) -> None:
    """Measure each run and show all in one table."""
    from torchcaps.suites import SUITES, as_json, draw_suite, measure_run, table_of
    from torchcaps.train import load_run

    SUITES[suite]  # an unknown name is an error before any run is loaded
    found = {}
    for name, folder in _names(folders).items():
        run: Run = load_run(folder, choose_device(device))
        with working(f"measuring {name}"):
            found[name] = measure_run(run, suite, data_dir=data_dir, limit=limit)
    if figure is not None:
        draw_suite(found, figure)
    if json:
        print_json(as_json(found, suite, limit, choose_device(device)))
    else:
        print_table(table_of(found))


def _names(folders: list[Path]) -> dict[str, Path]:
    """The last part of each folder, or all of it where two are alike."""
    short = [folder.resolve().name for folder in folders]
    return {
        str(folder) if short.count(name) > 1 else name: folder
        for name, folder in zip(short, folders, strict=True)
    }


def show_result(result: dict[str, Any], run: Run) -> None:
    """Print loss, metrics and tables of the evaluation of a run."""
    task = run.task
    typer.echo(f"{result['data']} {result['split']}: {result['images']:,} images")
    found = [f"{each.title} {each.format(result[each.name])}" for each in task.shown_metrics(run.recipe.loss)]
    typer.echo(", ".join([*found, f"loss {result['loss']:.5f}"]))
    wide = max([12, *map(len, result.get("class_accuracy", {})), *map(len, result.get("classes", {}))])
    for name, accuracy in result.get("class_accuracy", {}).items():
        typer.echo(f"  {name:<{wide}} " + ("no images" if accuracy is None else f"{accuracy:.2%}"))
    if "class_accuracy" in result:
        _print_confusion(list(result["class_accuracy"]), result["confusion"])
    for name, values in result.get("classes", {}).items():
        typer.echo(
            f"  {name:<{wide}} " + "  ".join(_value(task, key, value) for key, value in values.items())
        )


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
