"""`torchcaps demo`: train a small capsule network here and look at it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from .terminal import ProgressBar, Quiet


def command(
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder for the run and its page.")
    ] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Train two small networks on handwritten digits, one of them with REM, and write a page about them.

    The page shows what they learnt and how they decide.
    """
    from torchcaps.experiments import describe_demo, record_demo
    from torchcaps.pages import run_demo

    with ProgressBar(is_shown=not quiet) as bar:
        demo = run_demo(out, watcher=bar)
    typer.echo(describe_demo(record_demo(demo, out)))
    typer.echo(f"see what it learnt: {demo.page}")
    typer.echo(f"next: torchcaps explain {quote(str(out / 'run'))} test:7")
