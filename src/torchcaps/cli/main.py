"""The `torchcaps` command."""

from __future__ import annotations

import sys

import typer

from . import bench, data, demo, evaluate, export, import_weights, listing, predict, train

app = typer.Typer(
    name="torchcaps",
    help="Capsule networks: train them, measure them, and see the parse trees inside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(listing.command)
app.command("train")(train.command)
app.command("eval")(evaluate.command)
app.command("predict")(predict.command)
app.command("export")(export.command)
app.command("demo")(demo.command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(import_weights.app, name="import-weights")


def run() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    try:
        app()
    except KeyboardInterrupt:
        print("torchcaps: interrupted; a training run continues with --resume", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        from torchcaps.core.errors import (
            UserError,
        )  # its package imports torch: not before --help has answered

        if not isinstance(error, UserError):
            raise
        print(f"torchcaps: {error}", file=sys.stderr)
        sys.exit(2)
