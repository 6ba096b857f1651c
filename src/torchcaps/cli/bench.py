"""`torchcaps bench`: speed and memory on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .terminal import Device, Json, choose_device, print_json, print_table

if TYPE_CHECKING:
    from torchcaps.bench import BenchRow

app = typer.Typer(help="Measure speed and memory, plain and fused side by side.", no_args_is_help=True)
Quick = Annotated[bool, typer.Option("--quick", help="Fewer cases and repeats.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", dir_okay=False, metavar="FILE", help="Write the rows here as they come."),
]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Begin no measurement after so many.")]
GoesOn = Annotated[
    bool, typer.Option("--continue", help="Keep the rows of FILE and measure what this commit has not.")
]


@app.command("routing")
def routing(
    device: Device = "auto",
    quick: Quick = False,
    out: Out = None,
    minutes: Minutes = None,
    goes_on: GoesOn = False,
    json: Json = False,
    compiled: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Also under torch.compile; default on CUDA.")
    ] = None,
) -> None:
    """The capsule layer alone, with curves in batch, children, parents and iterations."""
    _run("routing", device, json, quick=quick, file=out, minutes=minutes, goes_on=goes_on, compiled=compiled)


def _add_suite(name: str, words: str) -> None:
    """The command of a suite that has no options of its own."""

    @app.command(name, help=words)
    def command(
        device: Device = "auto",
        quick: Quick = False,
        out: Out = None,
        minutes: Minutes = None,
        goes_on: GoesOn = False,
        json: Json = False,
    ) -> None:
        _run(name, device, json, quick=quick, file=out, minutes=minutes, goes_on=goes_on)


for _name, _words in {
    "train": "Whole training steps, and an epoch of MNIST's size.",
    "models": "A forward and a training pass of every model.",
    "segmentation": "SegCaps at 128 and 512 pixels: plain, fused, and with checkpoints.",
    "render": "Images of a cube and of a mesh of 5,120 faces, by every engine of this machine.",
    "filter": "Updates of the localization filter, on maps of 6.2 and of 100 square kilometres.",
    "partwhole": "PartWhole images with their true trees, drawn at 32, 64 and 128 pixels.",
}.items():
    _add_suite(_name, _words)


@app.command("chart")
def chart(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results of one device.")],
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="Folder of the picture.")] = Path(
        "docs/gallery"
    ),
) -> None:
    """Draw results that were measured before."""
    from torchcaps.bench import write_chart

    typer.echo(str(write_chart(files, out)))


def _run(suite: str, device: str, json: bool, *, file: Path | None, **settings: Any) -> None:
    import torch

    from torchcaps.bench import run_bench
    from torchcaps.core import counted

    chosen = torch.device(choose_device(device))
    results = run_bench(suite, chosen, file=file, on_row=_say, **settings)
    if json:
        print_json(results)
        return
    print_table([_shown(row) for row in results["rows"]])
    rates = (f"{name} {rate:.3g}" for name, rate in results["ceilings"].items() if rate is not None)
    typer.echo(f"{results['provenance']['device']}; ceilings: {', '.join(rates)}")
    if file is not None:
        typer.echo(f"{counted(len(results['rows']), 'row')} in {file}")


def _say(row: BenchRow) -> None:
    outcome = row.get("error") or row.get("skipped") or f"{row['ms']:.3f} ms"
    typer.echo(f"{row['case']}, batch {row['batch']}, {row['backend']}: {outcome}", err=True)


def _shown(row: BenchRow) -> dict[str, object]:
    """The row as people read it; the file has more."""
    is_measured, curve = row["ms"] is not None, row.get("curve")
    return {
        "case": row["case"],
        "batch": row["batch"],
        "backend": row["backend"],
        "ms": f"{row['ms']:.3f}" if is_measured else None,
        "spread": f"{row['spread']:.1%}" if is_measured else None,
        "img/s": f"{row['img_s']:,.0f}" if is_measured else None,
        "peak MiB": None if row["peak_mb"] is None else f"{row['peak_mb']:,.1f}",
        "of ceiling": f"{row['share_of_ceiling']:.1%}" if "share_of_ceiling" in row else None,
        "note": row.get("error") or row.get("skipped") or (f"curve of {curve}" if curve else None),
    }
