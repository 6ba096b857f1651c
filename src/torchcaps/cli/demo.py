"""`torchcaps demo`: train a small capsule network here and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the run and its page.")] = Path("demo"),
) -> None:
    """Train a small capsule network on real digits and write a page that shows what it learnt."""
    from torchcaps.experiments.demo import run_demo

    from .progress import ProgressBar

    with ProgressBar() as bar:
        result = run_demo(out, watcher=bar)
    typer.echo(f"accuracy on {result['images']:,} held-out digits: {result['accuracy']:.2%}")
    typer.echo(f"see what it learnt: {result['page']}")
