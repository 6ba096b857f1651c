"""`torchcaps shrink`: a pruned run without its zeros."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..terminal import Device, Json, RunFolder, choose_device, print_json, working, writable


def command(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="Folder of the new run; default RUN-shrunk.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Shrink also where that gains nothing.")] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Make a smaller network of a pruned run; the answers stay the same.

    The gain is measured first, and a network that would be slower or just as large is refused.
    """
    from torchcaps.pages import shrink_and_measure
    from torchcaps.zoo import sibling_folder

    folder = out or sibling_folder(run, "-shrunk")
    writable(folder)
    with working("shrinking and measuring"):
        shrunk = shrink_and_measure(run, folder, choose_device(device), force=force)
    if json:
        print_json(asdict(shrunk))
        return
    for name in ("parameters", "flops", "bytes"):
        before, after = getattr(shrunk.before, name), getattr(shrunk.after, name)
        typer.echo(f"{name:<22} {before:>15,} -> {after:>13,}  ({after / before:.1%})")
    for batch, ms in shrunk.before.ms.items():
        typer.echo(f"{f'ms for {batch} image(s)':<22} {ms:>15,.2f} -> {shrunk.after.ms[batch]:>13,.2f}")
    typer.echo(f"activations differ by at most {shrunk.largest_difference:.1e}; run saved in {folder}")
