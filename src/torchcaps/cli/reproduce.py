"""`torchcaps reproduce`: the tables and figures of the thesis, by their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from .terminal import DataDir, Device, Json, choose_machine, print_json, print_table

if TYPE_CHECKING:
    from torchcaps.experiments import Budget, Experiment, Progress, RunCounts

_RESULTS = Path("results")


class _Which(TypedDict):
    """Which runs of an experiment are meant."""

    budget: Budget
    seeds: int | None


Labels = Annotated[
    list[str] | None,
    typer.Argument(metavar="LABEL...", help="Labels from --list, such as fig:fix_vs_ann, in this order."),
]
List = Annotated[bool, typer.Option("--list", help="List every table and figure with its state.")]
BudgetName = Annotated[str, typer.Option("--budget", help="smoke, quick or full.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="How many seeds of each setting.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--setting",
        metavar="NAME",
        help="Make only the settings of this name; * stands for any letters; may be repeated.",
    ),
]
Minutes = Annotated[
    float, typer.Option("--minutes", help="Begin no epoch after so many minutes, all labels together.")
]
Out = Annotated[Path, typer.Option("--out", file_okay=False, help="Folder of the runs.")]
Results = Annotated[
    Path | None, typer.Option("--results", help="Folder of the gathered results; results/ by default.")
]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--at-once", min=1, help="How many runs to train side by side; by default several on a GPU."
    ),
]
Processes = Annotated[
    int | None,
    typer.Option("--processes", min=1, help="Train in so many processes instead, one run in each."),
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="Run on this Ray cluster; local starts one here.")
]
Merge = Annotated[
    Path | None, typer.Option("--merge", help="Add results of other machines: a folder, or a --pack file.")
]
Renew = Annotated[
    bool,
    typer.Option("--renew", help="Make runs again whose recipe or data has changed; set the old aside."),
]
Pack = Annotated[
    Path | None, typer.Option("--pack", help="Write the results of all runs in --out to a .tar.gz.")
]
Precision = Annotated[str, typer.Option("--precision", help="32, bf16, or auto: the faster one.")]


def command(
    labels: Labels = None,
    list_: List = False,
    budget: BudgetName = "full",
    seeds: Seeds = None,
    settings: Settings = None,
    minutes: Minutes = float("inf"),
    out: Out = Path("runs/experiments"),
    results: Results = None,
    at_once: AtOnce = None,
    processes: Processes = None,
    cluster: Cluster = None,
    merge: Merge = None,
    renew: Renew = False,
    pack: Pack = None,
    device: Device = "auto",
    precision: Precision = "32",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Repeat experiments of the thesis and others, or list them all.

    Missing runs are made and their results are gathered.
    """
    if list_ or not labels:
        _check_nothing_asked(setting=settings, merge=merge, renew=renew, pack=pack)
        _list(out, results or _RESULTS, data_dir, json=json)
        return

    from torchcaps.experiments import Visit, find_experiment, read_budget, run_in_processes

    say = partial(typer.echo, err=json)
    machine = choose_machine(device, precision, data_dir)
    visit = Visit(minutes, at_once=at_once, on_run=say)
    make = _runner(cluster, processes)
    place = results or (out / "results" if budget == "smoke" else _RESULTS)  # a smoke run proves nothing
    experiments = [find_experiment(label) for label in labels]  # an unknown label ends it before any run
    if settings:
        experiments = [experiment.only(*settings) for experiment in experiments]
    which: _Which = {"budget": read_budget(budget), "seeds": seeds}
    for words in _take_stock(experiments, out, merge, renew, which):
        say(words)
    if processes is not None:
        run_in_processes(experiments, out, machine, processes=processes, visit=visit, **which)
    counts = {}
    for experiment in experiments:  # runs that must be alone come after the processes
        done = counts[experiment.label] = make(experiment, out, machine, visit=visit, **which)
        whole = find_experiment(experiment.label)  # a page has all settings
        for words in _gather(whole, out, place, pack, which["budget"]):
            say(words)
        say(_summary(experiment, out, done, which))
    _end(counts, json=json)


def _check_nothing_asked(**asked: object) -> None:
    """Raise where an option is about runs, but no label says of which experiments."""
    from torchcaps.core import UserError

    given = [f"--{name}" for name, value in asked.items() if value]
    if given:
        raise UserError(f"{', '.join(given)}: name the labels whose runs are meant, and leave --list out")


def _list(out: Path, results: Path, data_dir: Path | None, *, json: bool) -> None:
    """Print every table and figure with its state."""
    from torchcaps.experiments import list_experiments

    found = list_experiments(out, results, data_dir)
    if json:
        print_json([asdict(progress) for progress in found])
    else:
        _print_chapters(found)


def _print_chapters(found: list[Progress]) -> None:
    """A table for each chapter, under its name."""
    for number, chapter in enumerate(dict.fromkeys(progress.chapter for progress in found)):
        typer.echo(f"\n{chapter}" if number else chapter)
        print_table([_shown(progress) for progress in found if progress.chapter == chapter])


def _shown(progress: Progress) -> dict[str, str]:
    """A row for people: the runs of each budget, the accuracies of many settings as a range."""
    thesis = _range(progress.thesis)
    return {
        "label": progress.label,
        "needs": progress.needs,
        "state": progress.state,
        "full runs": f"{progress.full:,} of {progress.planned:,}" if progress.planned else "",
        "quick": f"{progress.quick:,}" if progress.quick else "",
        "test accuracy": _range(progress.ours) + (f" (thesis {thesis})" if thesis else ""),
    }


def _range(values: Sequence[float | None] | None) -> str:
    found = [value for value in values or () if value is not None]
    if len(found) < 2:
        return "".join(f"{value:.2f}" for value in found)
    return f"{min(found):.1f} to {max(found):.1f}, {len(found)} settings"


def _gather(
    experiment: Experiment, out: Path, place: Path, pack: Path | None, budget: Budget
) -> Iterator[str]:
    """Write what the runs of an experiment gave to the folder of results, and into an archive."""
    from torchcaps.experiments import gather_runs, pack_runs

    made_by = f"torchcaps reproduce {experiment.label} --budget {budget}"
    if gather_runs(experiment, out, place, budget=budget, command=made_by):
        yield f"gathered in {place / experiment.slug}.md"
    if pack is not None:
        yield f"{pack_runs(out, pack)} files packed into {pack}"


def _take_stock(
    experiments: list[Experiment], out: Path, merge: Path | None, renew: bool, which: _Which
) -> Iterator[str]:
    """Add results of other machines and set outdated ones aside, before anything is run."""
    from torchcaps.experiments import merge_runs, set_aside

    if merge is not None:
        merged = sum(merge_runs(experiment, merge, out) for experiment in experiments)
        yield f"{merged} runs taken over from {merge}"
    if renew:
        aside = sum(set_aside(experiment.planned(**which), out) for experiment in experiments)
        yield f"{aside} runs with an older recipe or older data set aside"


def _summary(experiment: Experiment, out: Path, done: RunCounts, which: _Which) -> str:
    from torchcaps.experiments import outdated_runs

    words = f"{experiment.label}: {done.done} of {done.planned} runs done, {done.failed} failed"
    if done.failed:
        folder = out / experiment.slug
        words += f" (why stands in error.json in their folders below {folder}; delete it to try again)"
    outdated = len(outdated_runs(experiment.planned(**which), out))
    return (
        f"{words}; {outdated} of them with an older recipe or older data, --renew makes these again"
        if outdated
        else words
    )


def _end(counts: dict[str, RunCounts], *, json: bool) -> None:
    """Print the counts where they are asked for; failed runs are an exit code of 1."""
    if json:
        print_json({label: asdict(counted) for label, counted in counts.items()})
    if any(counted.failed for counted in counts.values()):
        raise typer.Exit(1)


def _runner(cluster: str | None, processes: int | None) -> Callable[..., RunCounts]:
    """What makes the missing runs of an experiment."""
    from torchcaps.core import UserError
    from torchcaps.experiments import run_missing, run_on_cluster

    if cluster is not None and processes is not None:
        raise UserError("--cluster and --processes exclude each other: choose one")
    return run_missing if cluster is None else partial(run_on_cluster, address=cluster)
