"""The `torchcaps` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from torchcaps import __version__

from . import (
    bench,
    data,
    demo,
    evaluate,
    explain,
    export,
    import_weights,
    listing,
    parse,
    predict,
    prune,
    rem,
    reproduce,
    shrink,
    train,
)

app = typer.Typer(
    name="torchcaps",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(listing.command)
app.command("train")(train.command)
app.command("eval")(evaluate.command)
app.command("predict")(predict.command)
app.command("prune")(prune.command)
app.command("shrink")(shrink.command)
app.command("rem")(rem.command)
app.command("parse")(parse.command)
app.command("explain")(explain.command)
app.command("export")(export.command)
app.command("demo")(demo.command)
app.command("reproduce")(reproduce.command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(import_weights.app, name="import-weights")


def _print_version(is_asked: bool) -> bool:
    if is_asked:
        typer.echo(f"torchcaps {__version__}")
        raise typer.Exit
    return is_asked


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Capsule networks: train them, measure them, and see the parse trees inside."""


_EXTRAS = {"matplotlib": "viz", "tensorboard": "viz", "scipy": "mat", "h5py": "keras", "onnxscript": "export"}

_INTERRUPTED = 130


def run() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    # Threads that spin while they wait make a step many times slower on a busy machine. PyTorch reads
    # this when it is imported, which commands do later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except KeyboardInterrupt:  # while modules were being imported; typer makes later ones an exit code
        _say_how_to_go_on()
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            _say_how_to_go_on()
        raise
    except Exception as error:
        message = _message_for(error)
        if message is None:
            raise
        print(f"torchcaps: {message}", file=sys.stderr)
        sys.exit(2)


def _say_how_to_go_on() -> None:
    print(
        "torchcaps: interrupted; train goes on with --resume, "
        "rem, prune and reproduce when they are called again",
        file=sys.stderr,
    )


def _message_for(error: Exception) -> str | None:
    """What to tell the user, or None where the mistake is ours and a traceback helps."""
    # imported here: the package imports torch, and --help answers before that
    from torchcaps.core.errors import UserError

    if isinstance(error, UserError):
        return str(error)
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and missing in _EXTRAS:
        return f'this command needs {missing}: pip install "torchcaps[{_EXTRAS[missing]}]"'
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "this needs more memory than the machine has; choose a smaller model, batch or image size"
    if isinstance(error, OSError) and error.filename is not None:  # a disk or a permission
        return f"{error.filename}: {error.strerror}"
    return None
