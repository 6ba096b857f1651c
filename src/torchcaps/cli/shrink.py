"""`torchcaps shrink`: a pruned run without its zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Device, Json, RunFolder, choose_device
from .show import print_json


def command(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the new run; default RUN-shrunk.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Leave out the capsules and channels that pruning cut off; the answers stay the same."""
    from torchcaps.pages import shrink_and_measure

    folder = out or run.with_name(f"{run.name}-shrunk")
    report = shrink_and_measure(run, folder, choose_device(device))
    if json:
        print_json(report)
        return
    before, after = report["before"], report["after"]
    for name in ("parameters", "flops", "bytes"):
        typer.echo(
            f"{name:<22} {before[name]:>15,} -> {after[name]:>13,}  ({after[name] / before[name]:.1%})"
        )
    for batch, ms in before["ms"].items():
        typer.echo(f"{f'ms for {batch} image(s)':<22} {ms:>15,.2f} -> {after['ms'][batch]:>13,.2f}")
    typer.echo(f"activations differ by at most {report['largest_difference']:.1e}; run saved in {folder}")
