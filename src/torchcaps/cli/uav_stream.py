"""`torchcaps uav stream`: localization line by line, between standard input and output."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from .options import Device, choose_device
from .uav import RunOption


def stream(
    compiled: Annotated[Path, typer.Argument(metavar="MAP.tcmap", help="Map that uav compile-map wrote.")],
    run: RunOption,
    images: Annotated[
        Path, typer.Option("--images", help="Folder of the pictures that lines name.")
    ] = Path(),
    likelihood: Annotated[str, typer.Option("--likelihood", help="bayesian, linear or ratio.")] = "bayesian",
    mavlink: Annotated[
        str | None, typer.Option("--mavlink", metavar="HOST:PORT", help="Also send estimates there by UDP.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Read a JSON object for each update from standard input and answer each with the estimate.

    The keys are the columns of a flight log. A line that cannot be used is answered by its error.
    """
    from torchcaps.apps.uav import Localizer, load_describer, load_matching, open_map
    from torchcaps.apps.uav.mavlink import MavlinkSender
    from torchcaps.apps.uav.stream import degrees_of, localize_lines

    opened = open_map(compiled)
    describer = load_describer(run, choose_device(device))
    localizer = Localizer(opened, describer, load_matching(run).likelihood(likelihood))
    with ExitStack() as stack:
        sink = None if mavlink is None else stack.enter_context(MavlinkSender(mavlink)).send
        for answer in localize_lines(localizer, sys.stdin.buffer, images, degrees_of(opened.info.crs), sink):
            typer.echo(answer)
            sys.stdout.flush()
