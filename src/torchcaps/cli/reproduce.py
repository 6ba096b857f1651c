"""`torchcaps reproduce`: the tables and figures of the thesis, by their labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DataDir, Device, Json
from .show import print_json, print_table


def command(
    label: Annotated[str | None, typer.Argument(help="A label from --list, such as fig:fix_vs_ann.")] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List every table and figure with its state.")
    ] = False,
    budget: Annotated[str, typer.Option("--budget", help="smoke, quick or full.")] = "full",
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds of each setting.")] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="Stop cleanly after so many.")] = float("inf"),
    out: Annotated[Path, typer.Option("--out", help="Folder of the runs.")] = Path("runs/experiments"),
    results: Annotated[Path, typer.Option("--results", help="Folder of the gathered results.")] = Path(
        "results"
    ),
    merge: Annotated[Path | None, typer.Option("--merge", help="Take over runs made elsewhere.")] = None,
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="32 or bf16.")] = "32",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Run what an experiment still lacks, gather it, or list them all."""
    from torchcaps.experiments.catalogue import list_experiments

    if list_ or label is None:
        rows = list_experiments(out, results, data_dir)
        (print_json if json else print_table)(rows)
        return

    from torchcaps.experiments.plan import EXPERIMENTS
    from torchcaps.experiments.runner import gather_runs, merge_runs, run_missing
    from torchcaps.train import Machine

    experiment = EXPERIMENTS[label]
    if merge is not None:
        typer.echo(f"{merge_runs(experiment, merge, out)} runs taken over from {merge}")
    machine = Machine(device=device, precision=precision, data_dir=data_dir)  # type: ignore[arg-type]
    counts = run_missing(
        experiment,
        out,
        machine,
        budget=budget,
        seeds=seeds,
        minutes=minutes,
        on_run=lambda name: typer.echo(name),
    )
    gathered = f"torchcaps reproduce {label} --budget {budget}"
    gather_runs(experiment, out, results, budget=budget, command=gathered)
    if json:
        print_json(counts)
    else:
        typer.echo(f"{counts['done']} of {counts['planned']} runs done, {counts['failed']} failed")
