"""Localization line by line: a JSON object for each update in, one with the estimate or an error out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from torchcaps.core import Plain, UserError

from .filter import Estimate
from .flight import FlightStep, ToDegrees, compass_of_grid, step_of_row
from .localize import Localizer, Update, read_image

Sink = Callable[[float, float, float, Estimate], None]  # time, longitude, latitude, estimate from true east
_MOST_BYTES = 2**16  # of a line


def localize_lines(
    localizer: Localizer,
    lines: Iterable[bytes],
    images: Path,
    to_degrees: ToDegrees,
    sink: Sink | None = None,
) -> Iterator[str]:
    """An answer for each line that is not empty; a line that cannot be used is answered by its error.

    Args:
        localizer: Follows the flight.
        lines: JSON objects with the columns of a flight log, see `flight`.
        images: Folder of the pictures that lines name.
        to_degrees: Of the map's projection.
        sink: Is given every estimate as well, with its heading counted from east, not from the map's x axis.
    """
    last = -math.inf
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            step = read_line(line, images)
            if not step.time > last:
                raise UserError(f"its time {step.time} is not after {last}")
        except UserError as error:
            yield json.dumps({"error": f"line {number} was left out: {error}"})
            continue
        last = step.time
        update = localizer.update(read_image(step.image), step.odometry, step.heading, step.ahead)
        longitude, latitude = to_degrees(update.estimate.x, update.estimate.y)
        if sink is not None:
            turned = compass_of_grid(to_degrees, update.estimate.x, update.estimate.y)
            estimate = replace(update.estimate, heading=update.estimate.heading - turned)
            sink(step.time, longitude, latitude, estimate)
        yield json.dumps(_answer(step, update, longitude, latitude))


def read_line(line: bytes, images: Path) -> FlightStep:
    """The update that a line describes; its keys are the columns of a flight log, `time` must be there."""
    if len(line) > _MOST_BYTES:
        raise UserError(f"it has {len(line):,} bytes, at most {_MOST_BYTES:,} are read")
    try:
        values = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"it is no JSON ({str(error)[:80]})") from error
    if not isinstance(values, dict):
        raise UserError("it is no JSON object")
    if "time" not in values:
        raise UserError("it has no time")
    row = {key: "" if value is None else str(value) for key, value in values.items()}
    step = step_of_row({"image": "", **row}, images)
    if not math.isfinite(step.time):
        raise UserError("its time is not a number")
    return step


def _answer(step: FlightStep, update: Update, longitude: float, latitude: float) -> Plain:
    found = update.estimate
    return {
        "time": step.time,
        "x": round(found.x, 3),
        "y": round(found.y, 3),
        "longitude": round(longitude, 8),
        "latitude": round(latitude, 8),
        "heading": round(math.degrees(found.heading), 3),
        "sigma": round(found.sigma, 3),
        "converged": found.converged,
        "restarted": found.restarted,
        "discarded": found.discarded,
        "problems": [*step.problems, *update.problems],
    }
