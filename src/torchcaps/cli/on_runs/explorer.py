"""`torchcaps app`: a local page to explore networks with."""

from __future__ import annotations

from typing import Annotated

import typer

from ..terminal import DataDir, Device, choose_device, working


def command(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN ...]",
            help="Folders of runs, a name from `torchcaps weights list`, or folders that `uav localize` or "
            "`lung segment` wrote.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0 takes any that is free.")
    ] = 7863,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    data_dir: DataDir = None,
    device: Device = "auto",
) -> None:
    """Open a page that shows why a network gives an image its class.

    Draw a digit, upload an image or take one of the dataset. Two runs are shown side by side.
    """
    import webbrowser
    from contextlib import closing, suppress

    from torchcaps.explorer import Explorer, Shelf, read_given

    given = read_given(sources or [])
    # Ctrl+C is the way to stop it
    with suppress(KeyboardInterrupt), closing(Shelf(given, data_dir, choose_device(device))) as shelf:
        with working("opening the network"):
            shelf.prepare()
        with Explorer(shelf, port) as server:
            typer.echo(f"open {server.url} in a browser on this machine; Ctrl+C stops it")
            if not no_browser:
                webbrowser.open(server.url_for_once)
            server.serve_forever()
