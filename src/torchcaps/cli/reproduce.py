"""`torchcaps reproduce`: the tables and figures of the thesis, by their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json
from .show import print_json, print_table

if TYPE_CHECKING:
    from torchcaps.experiments.plan import Experiment

_RESULTS = Path("results")


def command(
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="LABEL...", help="Labels from --list, such as fig:fix_vs_ann, in this order."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List every table and figure with its state.")
    ] = False,
    budget: Annotated[str, typer.Option("--budget", help="smoke, quick or full.")] = "full",
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds of each setting.")] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", help="Stop cleanly after so many, all labels together.")
    ] = float("inf"),
    out: Annotated[Path, typer.Option("--out", help="Folder of the runs.")] = Path("runs/experiments"),
    results: Annotated[
        Path | None, typer.Option("--results", help="Folder of the gathered results; results/ by default.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option("--at-once", min=1, help="Runs side by side; several on a GPU by default.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, help="Run in so many processes instead, one run in each."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Run on this Ray cluster; local starts one here.")
    ] = None,
    merge: Annotated[
        Path | None,
        typer.Option("--merge", help="Take over runs of elsewhere: a folder, or a --pack file."),
    ] = None,
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Make runs again whose recipe has changed since; set the old aside."),
    ] = False,
    pack: Annotated[
        Path | None, typer.Option("--pack", help="Write the results of all runs in --out to a .tar.gz.")
    ] = None,
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="32 or bf16.")] = "32",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Run what experiments still lack, gather it, or list them all."""
    from torchcaps.experiments.catalogue import find_experiment, list_experiments

    if list_ or not labels:
        rows = list_experiments(out, results or _RESULTS, data_dir)
        (print_json if json else print_table)(rows)
        return

    from torchcaps.experiments.exchange import pack_runs
    from torchcaps.experiments.gather import gather_runs
    from torchcaps.experiments.processes import run_in_processes
    from torchcaps.experiments.runner import Visit
    from torchcaps.train import Machine

    say = partial(typer.echo, err=json)
    machine = Machine(device=device, precision=precision, data_dir=data_dir)  # type: ignore[arg-type]
    visit = Visit(minutes, at_once=at_once, on_run=say)
    make = _runner(cluster, processes)
    place = results or (out / "results" if budget == "smoke" else _RESULTS)  # a smoke run proves nothing
    experiments = [find_experiment(label) for label in labels]  # an unknown label ends it before any run
    which: dict[str, Any] = {"budget": budget, "seeds": seeds}
    for words in _take_stock(experiments, out, merge, renew, which):
        say(words)
    if processes is not None:
        run_in_processes(experiments, out, machine, processes=processes, visit=visit, **which)
    counts = {}
    for experiment in experiments:  # after processes: what must be alone
        done = counts[experiment.label] = make(experiment, out, machine, visit=visit, **which)
        made_by = f"torchcaps reproduce {experiment.label} --budget {budget}"
        gather_runs(experiment, out, place, budget=budget, command=made_by)
        if pack is not None:
            say(f"{pack_runs(out, pack)} files packed into {pack}")
        say(_summary(experiment, out, done, which))
    if json:
        print_json(counts)


def _take_stock(
    experiments: list[Experiment], out: Path, merge: Path | None, renew: bool, which: dict[str, Any]
) -> Iterator[str]:
    """Bring in results of elsewhere and set old ones aside, before anything is run."""
    from torchcaps.experiments.exchange import merge_runs
    from torchcaps.experiments.older import set_aside

    if merge is not None:
        merged = sum(merge_runs(experiment, merge, out) for experiment in experiments)
        yield f"{merged} runs taken over from {merge}"
    if renew:
        aside = sum(set_aside(experiment, out, **which) for experiment in experiments)
        yield f"{aside} runs of an older plan set aside"


def _summary(experiment: Experiment, out: Path, done: dict[str, int], which: dict[str, Any]) -> str:
    from torchcaps.experiments.older import older_runs

    words = f"{experiment.label}: {done['done']} of {done['planned']} runs done, {done['failed']} failed"
    older = len(older_runs(experiment, out, **which))
    return f"{words}; {older} were made by an older plan, --renew makes them again" if older else words


def _runner(cluster: str | None, processes: int | None) -> Callable[..., dict[str, int]]:
    """What makes the missing runs of an experiment."""
    from torchcaps.core.errors import UserError
    from torchcaps.experiments.cluster import run_on_cluster
    from torchcaps.experiments.runner import run_missing

    if cluster is not None and processes is not None:
        raise UserError("--cluster and --processes are two ways to share the runs out; choose one")
    return run_missing if cluster is None else partial(run_on_cluster, address=cluster)
