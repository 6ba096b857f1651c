"""`torchcaps rem`: train with REM, or look at runs as REM does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .terminal import (
    DataDir,
    Device,
    Json,
    LevelsOption,
    OtherData,
    Precision,
    Quiet,
    choose_device,
    choose_machine,
    levels_for,
    print_json,
    print_table,
    read_levels,
    say_chosen,
    say_left_out_of,
    working,
)
from .train import train_fitted

if TYPE_CHECKING:
    from torchcaps.pages import RunSummary
    from torchcaps.train import Fitted, Machine, Recipe, Run


def command(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="RUN|RECIPE...", help="Run folders to look at, or recipes to train with REM."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", file_okay=False, help="Folder for the runs that recipes make; default runs."),
    ] = Path("runs"),
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Replace a key of the recipes: pruning.strength=3e-4."
        ),
    ] = None,
    data: OtherData = None,
    levels: LevelsOption = "even",
    device: Device = "auto",
    precision: Precision = "32",
    data_dir: DataDir = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train with REM, which prunes for fewer parse trees, and compare runs side by side.

    Prints accuracy, parse trees and sparsity; a recipe is trained first.
    """
    from torchcaps.pages import summarise_run
    from torchcaps.train import Run
    from torchcaps.zoo import given_name

    chosen, machine = choose_device(device), choose_machine(device, precision, data_dir, quiet=quiet)
    train_as = partial(_training, out=out, changes=set_ or [], data=data, data_dir=data_dir)
    planned = _plan(sources, train_as, levels=levels, is_changed=bool(set_ or data))
    found = []
    for source in planned:
        run = source if isinstance(source, Run) else _train(source, machine, is_quiet=json or quiet)
        run.model.to(chosen)
        with working(f"counting parse trees of {given_name(run.folder)}"):
            found.append(summarise_run(run, levels=levels_for(run, levels, data_dir), data_dir=data_dir))
    if json:
        print_json([asdict(summary) for summary in found])
    else:
        _print(found)


class _Training(NamedTuple):
    """A recipe that is to be trained, and where."""

    fitted: Fitted
    folder: Path

    @property
    def recipe(self) -> Recipe:
        return self.fitted.recipe


def _plan(
    sources: list[str], train_as: Callable[[str], _Training], *, levels: str, is_changed: bool
) -> list[Run | _Training]:
    """Every source as a run or a training; what cannot be done is refused before anything is trained."""
    from torchcaps.core import UserError
    from torchcaps.parse import check_levels
    from torchcaps.train import load_run
    from torchcaps.zoo import find_run, is_pretrained

    sources = [str(find_run(source)) if is_pretrained(source) else source for source in sources]
    is_run = [(Path(source) / "recipe.json").is_file() for source in sources]
    if is_changed and all(is_run):
        raise UserError(
            "--set and --data change recipes before they are trained; these are runs, which stay as they are"
        )
    planned = [
        load_run(Path(source)) if is_there else train_as(source)
        for source, is_there in zip(sources, is_run, strict=True)
    ]
    folders = [source.folder for source in planned if isinstance(source, _Training)]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"several of these recipes would be trained in {folder}: give them one at a time")
    for source, plan in zip(sources, planned, strict=True):
        try:
            check_levels(plan.recipe.sketch(), read_levels(levels))
        except UserError as error:
            raise UserError(f"{source}: {error}") from error
    return planned


def _training(
    source: str, *, out: Path, changes: list[str], data: str | None, data_dir: Path | None
) -> _Training:
    from torchcaps.core import UnknownNameError, UserError
    from torchcaps.pages import with_rem
    from torchcaps.train import packaged_recipes, recipe_for_data, run_name
    from torchcaps.zoo import find_run

    is_file = source.endswith((".yaml", ".yml"))
    try:
        fitted = recipe_for_data(source, changes, data=data, data_dir=data_dir, find_start=find_run)
    except UnknownNameError as error:
        if is_file or source in packaged_recipes():
            raise
        raise UserError(f"{source} holds no run (no recipe.json); {error}") from error
    name = Path(source).stem if is_file and data is None else run_name(source, fitted)
    find_run(fitted.recipe.start_from)  # says what a name that is nearly right may be
    return _Training(
        fitted._replace(recipe=with_rem(fitted.recipe)), out / f"{name.removesuffix('_rem')}-rem"
    )


def _train(training: _Training, machine: Machine, *, is_quiet: bool) -> Run:
    from torchcaps.train import load_run

    if not is_quiet:
        say_chosen(training.fitted)
        say_left_out_of(training.recipe.data.name, machine.data_dir)
    train_fitted(training.fitted, training.folder, machine, resume=True, is_shown=not is_quiet)
    return load_run(training.folder)


def _print(found: list[RunSummary]) -> None:
    from torchcaps.parse import say_needless, say_rounded_up

    print_table(
        [
            {
                "run": summary.run,
                "accuracy": f"{summary.accuracy:.2%}",
                "quantized": f"{summary.quantized_accuracy:.2%}",
                "even": f"{summary.even_accuracy:.2%}",
                "entropy": f"{summary.entropy:.2f} bits",
                "trees": f"{summary.keys:,} of {summary.images:,}",
                "sparsity": f"{summary.sparsity:.1%}" if summary.pruned else "not pruned",
                "parameters left": f"{summary.parameters_left:,}",
            }
            for summary in found
        ]
    )
    for summary in found:
        if needless := say_needless(summary.accuracy, summary.even_accuracy, images=summary.images):
            typer.echo(f"{summary.run} is {needless}")
        if rounded := say_rounded_up(len(summary.classes), summary.levels):
            typer.echo(f"{summary.run}: {rounded}")
