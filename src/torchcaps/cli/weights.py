"""`torchcaps weights`: pretrained networks, listed, fetched and packed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json
from .show import print_json, print_table

app = typer.Typer(help="List, fetch and pack pretrained networks.", no_args_is_help=True)


@app.command("list")
def list_(
    pattern: Annotated[str, typer.Argument(help="A shell pattern, such as '*mnist*'.")] = "*",
    json: Json = False,
) -> None:
    """List pretrained networks with what they reach on their test images."""
    from torchcaps.core.fields import as_plain
    from torchcaps.core.metric import metric_of
    from torchcaps.zoo import list_weights

    entries = list_weights(pattern)
    if json:
        print_json([as_plain(entry) for entry in entries])
    elif not entries:
        typer.echo("there are no pretrained networks of that name")
    else:
        print_table(
            [
                {
                    "name": entry.name,
                    "data": entry.data,
                    "test images": ", ".join(
                        f"{metric_of(key).title} {metric_of(key).format(value)}"
                        for key, value in entry.metrics.items()
                    ),
                    "MB": f"{entry.bytes / 2**20:.2f}",
                }
                for entry in entries
            ]
        )


@app.command("get")
def get(name: Annotated[str, typer.Argument(help="A name from `torchcaps weights list`.")]) -> None:
    """Fetch the files of a pretrained network where they are missing, verified by checksum."""
    from torchcaps.zoo import find_entry, get_weights

    typer.echo(str(get_weights(find_entry(name))))


@app.command("pack")
def pack(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    name: Annotated[str, typer.Argument(help="Its name: the model, a dot, and what it was trained on.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write into; by default that of the package.")
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Store the weights as float16.")] = False,
) -> None:
    """Make a pretrained network of a run: weights, recipe, result, checksums and a card."""
    from torchcaps.zoo import pack_run

    entry = pack_run(run, name, half=half, **({} if out is None else {"out": out}))
    typer.echo(f"{entry.name}: {entry.bytes / 2**20:.2f} MB")
