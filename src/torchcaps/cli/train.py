"""`torchcaps train`: from a recipe to a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import (
    Changes,
    DataDir,
    Device,
    Json,
    NewRun,
    OtherData,
    Precision,
    ProgressBar,
    Quiet,
    RecipeName,
    Resume,
    choose_machine,
    faster_precision,
    is_first_process,
    print_json,
    say_chosen,
    say_iterations,
    say_left_out_of,
)

if TYPE_CHECKING:
    from torchcaps.train import Fitted, Machine, Recipe, TrainResult, Watcher


def command(
    recipe: RecipeName,
    set_: Changes = None,
    data: OtherData = None,
    out: NewRun = None,
    resume: Resume = False,
    device: Device = "auto",
    devices: Annotated[int, typer.Option("--devices", min=1, help="How many devices share each batch.")] = 1,
    precision: Precision = "32",
    data_dir: DataDir = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model as a recipe says, on its data or yours."""
    from torchcaps.train import TensorBoard, recipe_for_data, run_name
    from torchcaps.zoo import find_run

    fitted = recipe_for_data(
        recipe, set_ or [], data=data, data_dir=data_dir, devices=devices, find_start=find_run
    )
    settings, folder = fitted.recipe, out or Path("runs") / run_name(recipe, fitted)
    if not quiet and is_first_process():
        say_chosen(fitted)
        say_left_out_of(settings.data.name, data_dir)
    machine = choose_machine(device, precision, data_dir, devices=devices, quiet=quiet)
    events = [TensorBoard(folder / "tensorboard")] if tensorboard else []
    is_shown = is_first_process() and not (json or quiet)
    result = train_fitted(fitted, folder, machine, resume=resume, is_shown=is_shown, watchers=events)
    if not is_first_process():
        return
    if json:
        print_json(result)
        return
    typer.echo(summary(result, settings, folder))
    if quiet:
        return
    if hint := faster_precision(machine):
        typer.echo(hint)
    if can_be_explained(folder):
        typer.echo(f"see why it decides as it does: torchcaps explain {quote(str(folder))} test:0")


def train_fitted(
    fitted: Fitted,
    folder: Path,
    machine: Machine,
    *,
    resume: bool,
    is_shown: bool,
    watchers: Sequence[Watcher] = (),
) -> TrainResult:
    """Train a recipe that was fitted to its data, with a bar; it may start from a pretrained network."""
    from torchcaps.train import Several, train
    from torchcaps.zoo import find_run

    with ProgressBar(is_shown=is_shown) as bar:
        watcher = Several(bar, *watchers)
        return train(fitted.recipe, folder, machine, resume=resume, watcher=watcher, find_start=find_run)


def can_be_explained(folder: Path) -> bool:
    """Whether `torchcaps explain` takes the run: its network has couplings to quantize."""
    from torchcaps.core import UserError
    from torchcaps.parse import check_levels
    from torchcaps.train import load_run

    run = load_run(folder)
    try:
        check_levels(run.model, None)
    except UserError:
        return False
    return run.task.is_explained


def summary(result: TrainResult, recipe: Recipe, folder: Path) -> str:
    """What came out of a training, in one line."""
    metrics, shown = result["metrics"], recipe.task.shown_metrics(recipe.loss)
    found = ", ".join(f"{each.title} {each.format(metrics[f'test_{each.name}'])}" for each in shown)
    return (
        f"test {found} with the weights of epoch {metrics['best_epoch'] + 1}"
        f"{say_iterations(metrics)}; trained in "
        f"{result['seconds']:.0f} s, run saved in {folder}"
    )
