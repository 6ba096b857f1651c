"""`torchcaps demo`: train a small capsule network here and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Quiet


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the run and its page.")] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Train on real digits here and write a page about it.

    Two small networks, one of them with REM; the page shows what they learnt and how they decide.
    """
    from torchcaps.pages import run_demo

    from .progress import ProgressBar

    with ProgressBar(is_shown=not quiet) as bar:
        demo = run_demo(out, watcher=bar)
    typer.echo(
        f"accuracy on {demo.images:,} held-out digits: {demo.accuracy:.2%}, without routing "
        f"{demo.plain.even_accuracy:.2%}"
    )
    for name, found in (("as trained", demo.plain), ("with REM", demo.rem)):
        typer.echo(
            f"  {name:<10} {found.keys:>4,} parse trees, {found.entropy:.2f} bits, "
            f"{found.sparsity:.0%} of the weights pruned, accuracy {found.quantized_accuracy:.2%} quantized"
        )
    typer.echo(f"see what it learnt: {demo.page}")
    typer.echo(f"next: torchcaps explain {out / 'run'} test:7")
