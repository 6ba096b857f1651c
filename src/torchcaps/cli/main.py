"""The `torchcaps` command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer
from typer.models import CommandInfo

from torchcaps import __version__

from . import bench, data, demo, import_weights, listing, recipe, rem, reproduce, train, weights
from .apps import lung, lung_segment, pose, uav, uav_flights
from .on_runs import evaluate, explain, explorer, export, parse, predict, prune, shrink
from .start import INTERRUPTED, TERMINATED, say_how_to_go_on
from .terminal import FIRST_STEPS, RecipeCommand, as_epilog, epilog, help_of, is_first_process

app = typer.Typer(
    name="torchcaps",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=as_epilog(FIRST_STEPS),
    rich_markup_mode=None,  # boxes would double the time that --help takes
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.command,
    "app": explorer.command,
    "predict": predict.command,
    "explain": explain.command,
    "list": listing.command,
    "train": train.command,
    "eval": evaluate.command,
    "parse": parse.command,
    "rem": rem.command,
    "shrink": shrink.command,
    "prune": prune.command,
    "export": export.command,
    "reproduce": reproduce.command,
}
_TRAINING = ("train", "rem")


def _first_paragraph(command: CommandInfo) -> str:
    """What lists of commands show; without it, they cut what is longer than a line."""
    words = command.help or getattr(command.callback, "__doc__", None) or ""
    return " ".join(words.partition("\n\n")[0].split())


for _name, _command in _COMMANDS.items():
    _kind = RecipeCommand if _name in _TRAINING else None
    app.command(_name, epilog=epilog(_name), cls=_kind)(_command)
lung.app.command("eval")(lung_segment.evaluate)
lung.app.command("segment")(lung_segment.segment)
uav.app.command("simulate")(uav_flights.simulate)
uav.app.command("localize")(uav_flights.localize)
uav.app.command("stream")(uav_flights.stream)
for _name, _group in {
    "recipe": recipe.app,
    "bench": bench.app,
    "pose": pose.app,
    "data": data.app,
    "import-weights": import_weights.app,
    "lung": lung.app,
    "weights": weights.app,
    "uav": uav.app,
}.items():
    for _member in _group.registered_commands:
        _member.epilog = epilog(f"{_name} {_member.name}")
        _member.short_help = _first_paragraph(_member)
    app.add_typer(_group, name=_name, epilog=epilog(_name), short_help=_group.info.help)
for _member in app.registered_commands:
    _member.short_help = _first_paragraph(_member)


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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show where in the code an error arose.")
    ] = False,
) -> None:
    """Capsule networks: train them, measure them, and see the parse trees inside."""
    del version
    _settings["verbose"] = verbose


_settings = {"verbose": False}


def run() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    # Threads that spin while they wait make a step many times slower on a busy machine. PyTorch reads
    # this when it is imported, which commands do later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.filterwarnings("ignore", r"Image size \(\d+ pixels\) exceeds limit")  # of pillow, which goes on
    try:
        if not _has_printed_help():
            app()
    except KeyboardInterrupt:  # before typer began, which makes later ones an exit code
        say_how_to_go_on()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            say_how_to_go_on()
        if end.code == TERMINATED and is_first_process():
            say_how_to_go_on("stopped")
        raise
    except Exception as error:
        message = _message_for(error)
        if message is None or _settings["verbose"]:
            raise
        print(f"torchcaps: {message}", file=sys.stderr)
        sys.exit(2)


def _has_printed_help() -> bool:
    """Print the help that is asked for, if any; where its reader is gone, end as commands do."""
    text = help_of(app, sys.argv[1:])
    if text is None:
        return False
    try:
        typer.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python writes the rest
        sys.exit(1)
    return True


def _message_for(error: Exception) -> str | None:
    """What to tell the user, or None where the mistake is ours and a traceback helps."""
    # imported here: the package imports torch, and --help answers before that
    from torchcaps.core import EXTRAS, UserError
    from torchcaps.storage import is_disk_error

    if isinstance(error, UserError):
        return str(error)
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and missing in EXTRAS:
        return f'this command needs {missing}: pip install "torchcaps[{EXTRAS[missing]}]"'
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "this needs more memory than the machine has; choose a smaller model, batch or image size"
    if isinstance(error, OSError) and error.filename is not None:  # a disk or a permission
        return f"{error.filename}: {error.strerror}"
    if is_disk_error(error):
        return f"a file cannot be written: {getattr(error, 'strerror', error)}"
    return None
