"""`torchcaps weights`: pretrained networks, listed, fetched and packed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import DataDir, Json, named_data, print_json, print_table, working

app = typer.Typer(help="List, fetch and pack pretrained networks.", no_args_is_help=True)


@app.command("list")
def list_(
    pattern: Annotated[str, typer.Argument(help="A shell pattern, such as '*mnist*'.")] = "*",
    json: Json = False,
) -> None:
    """List pretrained networks with what they reach on their test images."""
    from torchcaps.core import as_plain
    from torchcaps.zoo import is_here, list_weights

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
                    "task": entry.task,
                    "test images": entry.leading,
                    "parameters": f"{entry.parameters:,}",
                    "MB": f"{entry.bytes / 1e6:.2f}",
                    "files": "here" if is_here(entry) else "to get",
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
        Path | None,
        typer.Option("--out", file_okay=False, help="Folder to write into; by default that of the package."),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Store the weights as float16, if the answers stay the same.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="File in results/ with this network, trained with several seeds."),
    ] = None,
    setting: Annotated[str, typer.Option("--setting", help="Name of the rows of --results.")] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="Licence of the data, where they are a folder of yours.")
    ] = "",
    data_note: Annotated[
        str,
        typer.Option("--data-note", help="A sentence on how the data differ from those that are published."),
    ] = "",
    data: Annotated[
        str | None,
        typer.Option(
            "--data", help="Where the test images are now, as for torchcaps eval.", callback=named_data
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Make a pretrained network of a run: weights, recipe, result, checksums and a card.

    No path of this machine is packed. With --half the answers on the test images are compared first.
    """
    from torchcaps.zoo import Packing, pack_run

    packing = Packing(
        half=half,
        results=results,
        setting=setting,
        licence=licence,
        data_note=data_note,
        data=data,
        data_dir=data_dir,
    )
    with working("packing and comparing"):
        entry = pack_run(run, name, packing, **({} if out is None else {"out": out}))
    typer.echo(f"{entry.name}: {entry.leading}, {entry.bytes / 1e6:.2f} MB")
    if entry.rounding is not None:
        typer.echo(f"float16: {entry.rounding}")
