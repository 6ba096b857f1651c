"""`torchcaps demo`: train a small capsule network here and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the run and its page.")] = Path("demo"),
) -> None:
    """Train a small capsule network on real digits, and its twin with REM; a page shows what they learnt."""
    from torchcaps.pages import run_demo

    from .progress import ProgressBar

    with ProgressBar() as bar:
        result = run_demo(out, watcher=bar)
    typer.echo(f"accuracy on {result['images']:,} held-out digits: {result['accuracy']:.2%}")
    for name, row in (("as trained", result["plain"]), ("with REM", result["rem"])):
        typer.echo(
            f"  {name:<10} {row['keys']:>4,} parse trees, {row['entropy']:.2f} bits, "
            f"{row['sparsity']:.0%} of the weights pruned, accuracy {row['quantized_accuracy']:.2%} quantized"
        )
    typer.echo(f"see what it learnt: {result['page']}")
