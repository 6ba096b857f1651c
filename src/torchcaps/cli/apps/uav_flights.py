"""`torchcaps uav simulate`, `localize` and `stream`: flights over a map."""

from __future__ import annotations

import math
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import CountBar, Device, Json, Quiet, choose_device, print_json, working, writable
from .uav import Date, RunOption, one_date

if TYPE_CHECKING:
    from torchcaps.apps.uav import CompiledMap, Recorder

MapFile = Annotated[Path, typer.Argument(metavar="MAP.tcmap", help="Map that uav compile-map wrote.")]
LikelihoodOption = Annotated[
    str, typer.Option("--likelihood", help="How distances become probabilities: bayesian, linear or ratio.")
]
_MOST_PROBLEMS = 20  # updates whose problems are printed
_FRAMES = 150  # beliefs that a page shows at most


def simulate(
    maps: Annotated[list[Path], typer.Argument(metavar="MAP", help="GeoTIFF of the date that is seen.")],
    run: RunOption,
    out: Annotated[
        Path,
        typer.Option("--out", file_okay=False, help="Folder for flight.csv and images.", callback=writable),
    ],
    updates: Annotated[int, typer.Option("--updates", help="How many updates.")] = 60,
    step: Annotated[float, typer.Option("--step", help="Metres between updates.")] = 50.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes another flight.")] = 0,
    altitude: Annotated[
        float | None,
        typer.Option(
            "--altitude", help="Height of a camera in metres, whose frames are rendered and rectified."
        ),
    ] = None,
    tilt: Annotated[float, typer.Option("--tilt", help="Degrees of that camera from straight down.")] = 0.0,
    date: Date = None,
) -> None:
    """Fly over a map as another date shows it, with the noise of odometry and compass of the thesis.

    Images are cut out of the map. With --altitude, a camera renders ten frames before each update, and the
    square of ground is made from them as in flight.
    """
    from torchcaps.apps.uav import FlightPlan, Look, load_matching, simulate_flight
    from torchcaps.core import UserError

    if tilt and altitude is None:
        raise UserError("a tilted camera needs --altitude")
    matching = load_matching(run)
    look = None if altitude is None else Look(altitude, math.radians(tilt))
    plan = FlightPlan(updates=updates, step=step, seed=seed, look=look)
    flown = simulate_flight(one_date(maps, date, matching.pixel), matching.side, plan)
    flown.save(out)
    missing = sum(image is None for image in flown.images)
    typer.echo(f"{out / 'flight.csv'}: {updates} updates{f', {missing} without an image' if missing else ''}")


def localize(
    compiled: MapFile,
    flight: Annotated[Path, typer.Argument(metavar="FLIGHT.csv", help="Flight log, a row for each update.")],
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of the pictures.")],
    run: RunOption,
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder of the results.", callback=writable)
    ],
    likelihood: LikelihoodOption = "bayesian",
    odometry_only: Annotated[bool, typer.Option("--odometry-only", help="Do not look at images.")] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the trajectory of a flight on a compiled map."""
    from torchcaps.apps.uav import (
        Localizer,
        Recorder,
        load_describer,
        load_matching,
        read_flight,
        record_flight,
        require_images,
        require_odometry,
        require_on_map,
        summarize,
        write_results,
    )

    opened, matching = _checked_map(compiled), load_matching(run)
    if not odometry_only:
        matching.check_metres(opened.info.metres)
    steps = read_flight(flight, images, opened.info.crs)
    require_odometry(steps, flight)
    require_on_map(steps, opened.info.grid)
    if not odometry_only:
        require_images(steps, images)
    describer = None if odometry_only else load_describer(run, choose_device(device))
    localizer = Localizer(opened, describer, matching.likelihood(likelihood))
    recorder = Recorder(every=-(-len(steps) // _FRAMES))
    started = time.perf_counter()
    with CountBar("updates", is_shown=not (quiet or json)) as bar:
        record_flight(localizer, steps, recorder, on_update=lambda done: bar.reached(done, len(steps)))
    summary = summarize(recorder, time.perf_counter() - started)
    files = write_results(recorder, opened, out, summary)
    if json:
        print_json({**summary, "files": [str(path) for path in files]})
        return
    _say_problems(recorder)
    typer.echo(_in_words(summary))
    typer.echo(f"see {out / 'flight.html'}")


def _checked_map(path: Path) -> CompiledMap:
    """The map, once every plane was compared with its checksum: wrong places would look like right ones."""
    from torchcaps.apps.uav import open_map, verify_map

    opened = open_map(path)
    with working("checking the map"):
        verify_map(opened)
    return opened


def _say_problems(recorder: Recorder) -> None:
    from torchcaps.apps.uav.flight import time_text
    from torchcaps.core import counted

    pairs = zip(recorder.steps, recorder.updates, strict=True)
    found = [(step.time, update.problems) for step, update in pairs if update.problems]
    for seconds, problems in found[:_MOST_PROBLEMS]:
        typer.echo(f"time {time_text(seconds)}: {'; '.join(problems)}", err=True)
    if len(found) > _MOST_PROBLEMS:
        typer.echo(f"and {counted(len(found) - _MOST_PROBLEMS, 'update')} more, in trajectory.csv", err=True)


def _in_words(summary: dict[str, Any]) -> str:
    from torchcaps.core import counted

    updates = counted(summary["updates"], "update")
    if not summary["converged"]:
        return f"{updates}, not converged (sigma {summary['final_sigma_m']:.0f} m)"
    error = summary["mean_error_after_convergence_m"]
    known = "" if error is None else f", mean error after it {error:.1f} m"
    return f"{updates}, converged at {summary['updates_to_convergence']}{known}"


def stream(
    compiled: MapFile,
    run: RunOption,
    images: Annotated[
        Path, typer.Option("--images", help="Folder of the pictures that lines name.")
    ] = Path(),
    likelihood: LikelihoodOption = "bayesian",
    mavlink: Annotated[
        str | None, typer.Option("--mavlink", metavar="HOST:PORT", help="Also send estimates there by UDP.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Read a JSON object for each update from standard input and answer each with the estimate.

    The keys are the columns of a flight log. A line that cannot be used is answered by its error.
    """
    from torchcaps.apps.uav import Localizer, MavlinkSender, load_describer, load_matching, localize_lines
    from torchcaps.apps.uav.flight import degrees_of

    opened, matching = _checked_map(compiled), load_matching(run)
    matching.check_metres(opened.info.metres)
    describer = load_describer(run, choose_device(device))
    localizer = Localizer(opened, describer, matching.likelihood(likelihood))
    with ExitStack() as stack:
        sink = None if mavlink is None else stack.enter_context(MavlinkSender(mavlink)).send
        for answer in localize_lines(localizer, sys.stdin.buffer, images, degrees_of(opened.info.crs), sink):
            typer.echo(answer)
            sys.stdout.flush()
