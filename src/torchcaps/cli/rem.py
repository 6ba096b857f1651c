"""`torchcaps rem`: train with REM, or look at runs as REM does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json, LevelsOption, choose_device, read_levels
from .show import print_json, print_table

if TYPE_CHECKING:
    from torchcaps.train import Machine, Run


def command(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="RUN|RECIPE...", help="Run folders to look at, or recipes to train with REM."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the runs that recipes make; default runs.")
    ] = Path("runs"),
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Replace a key of the recipes: pruning.strength=3e-4.")
    ] = None,
    levels: LevelsOption = "11",
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="32 or bf16, for training.")] = "32",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Accuracy, parse trees and sparsity of runs side by side; a recipe is first trained with REM."""
    from torchcaps.experiments.rem.compare import describe_run
    from torchcaps.train import Machine

    chosen = choose_device(device)
    machine = Machine(device=chosen, precision=precision, data_dir=data_dir)  # type: ignore[arg-type]
    rows = []
    for source in sources:
        run = _open(source, out, set_ or [], machine, is_quiet=json)
        run.model.to(chosen)
        rows.append(describe_run(run, levels=read_levels(levels), data_dir=data_dir))
    (print_json if json else _print)(rows)


def _open(source: str, out: Path, changes: list[str], machine: Machine, *, is_quiet: bool) -> Run:
    from torchcaps.core.errors import UnknownNameError, UserError
    from torchcaps.experiments.rem.compare import rem_recipe, train_with_rem
    from torchcaps.train import Silent, load_run

    from .progress import ProgressBar

    if (Path(source) / "recipe.json").is_file():
        return load_run(Path(source))
    try:
        recipe = rem_recipe(source, changes)
    except UnknownNameError as error:
        raise UserError(f"{source} holds no run (no recipe.json); {error}") from error
    is_file = source.endswith((".yaml", ".yml"))
    name = Path(source).stem if is_file else source.replace("/", "-")
    folder = out / f"{name.removesuffix('_rem')}-rem"
    with ProgressBar() as bar:
        return train_with_rem(recipe, folder, machine, Silent() if is_quiet else bar)


def _print(rows: list[dict[str, Any]]) -> None:
    print_table(
        [
            {
                "run": row["run"],
                "accuracy": f"{row['accuracy']:.2%}",
                "quantized": f"{row['quantized_accuracy']:.2%}",
                "entropy": f"{row['entropy']:.2f} bits",
                "trees": f"{row['keys']:,} of {row['images']:,}",
                "sparsity": f"{row['sparsity']:.1%}" if row["pruned"] else "not pruned",
                "parameters": f"{row['parameters_left']:,}",
            }
            for row in rows
        ]
    )
