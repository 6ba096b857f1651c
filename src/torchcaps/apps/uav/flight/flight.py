"""Flight logs: our CSV, and that of UAV-VisLoc.

Our CSV has one row for each update and these columns; angles are degrees, counter-clockwise, and headings
count from the x axis of the map: 90 minus the compass, plus the compass of the y axis (`compass_of_grid`).
`x` and `y` are the true place where it is known.

    time, forward, left, turn, distance, heading, image, x, y, ahead
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError, counted
from torchcaps.storage import write_text

from ..filter import Grid, MotionNoise, Odometry
from .projection import compass_of_grid, degrees_of, transform_between

COLUMNS = ("time", "forward", "left", "turn", "distance", "heading", "image", "x", "y", "ahead")
_NEEDED = ("time", "forward", "left", "turn", "image")
_OPTIONAL = ("distance", "heading", "x", "y", "ahead")
_UNKNOWN = ("nan", "NaN")  # what programs write into cells of numbers that they do not know
_VISLOC = ("filename", "lat", "lon", "date")
_VISLOC_HEADINGS = ("heading", "Phi1")  # degrees of the compass


@dataclass(frozen=True)
class FlightStep:
    """What was measured at one update.

    Attributes:
        time: Seconds.
        odometry: The motion since the step before; None where it is unknown.
        heading: Radians, counter-clockwise from east.
        image: File of the picture of the ground.
        truth: The true place in metres of the map's projection.
        problems: What was wrong with the row.
        ahead: Metres from the vehicle to the middle of the picture, along the heading.
    """

    time: float
    odometry: Odometry | None
    heading: float | None = None
    image: Path | None = None
    truth: tuple[float, float] | None = None
    problems: tuple[str, ...] = ()
    ahead: float = 0.0


def read_flight(path: Path, images: Path, crs: str) -> list[FlightStep]:
    """The steps of a log in either layout; `crs` is the projection of the map.

    A row whose time is not after that of the row before is left out, with the words on the next step, or on
    the last one where none follows.
    UAV-VisLoc has no odometry: it is made from the true places, with the noise of the thesis.
    """
    rows = _rows(path)
    if not rows:
        raise UserError(f"{path} has no rows")
    if all(column in rows[0] for column in _NEEDED):
        return _ordered([step_of_row(row, images) for row in rows], path)
    if all(column in rows[0] for column in _VISLOC):
        return _visloc_steps(rows, images, crs)
    raise UserError(
        f"{path} should have the columns {', '.join(_NEEDED)}, or those of UAV-VisLoc "
        f"({', '.join(_VISLOC)}); it has {', '.join(filter(None, rows[0]))[:200]}{_hint(rows[0])}"
    )


def _hint(columns: Iterable[str]) -> str:
    """What to do with a table of other separators, which is read as one wide column."""
    first = next(iter(columns)) or ""
    is_other = any(mark in first for mark in ";\t")
    return "; save it with commas between the columns and points in the numbers" if is_other else ""


def require_images(steps: Sequence[FlightStep], images: Path) -> None:
    """Raise where the folder has none of the images that a log names: single ones may be missing."""
    if not images.is_dir():
        raise MissingDataError(f"no folder of images at {images}")
    named = [step.image for step in steps if step.image is not None]
    if named and not any(path.is_file() for path in named):
        raise MissingDataError(
            f"{images} has none of the {counted(len(named), 'image')} that the log names, such as "
            f"{named[0].relative_to(images.resolve())}: names in the log count from that folder"
        )


def require_odometry(steps: Sequence[FlightStep], path: Path) -> None:
    """Raise where no row of a log after the first has a motion: the vehicle would be taken to stand still."""
    later = steps[1:]
    if later and all(step.odometry is None for step in later):
        raise UserError(
            f"no row of {path} after the first has a motion: {later[0].problems[-1]}; fill in forward, left "
            "and turn, with points in the numbers"
        )


def require_on_map(steps: Sequence[FlightStep], grid: Grid) -> None:
    """Raise where a log has true places and none of them is on the map: it is one of other ground."""
    known = [step.truth for step in steps if step.truth is not None]
    if known and not any(_is_on(grid, *truth) for truth in known):
        x, y = known[0]
        east, north = grid.west + grid.columns * grid.cell, grid.south + grid.rows * grid.cell
        raise UserError(
            f"none of the {counted(len(known), 'true place')} of the log is on the map: the first is "
            f"x {x:.0f}, y {y:.0f} m, and the map shows x {grid.west:.0f} to {east:.0f}, "
            f"y {grid.south:.0f} to {north:.0f} m"
        )


def _is_on(grid: Grid, x: float, y: float) -> bool:
    return 0 <= x - grid.west <= grid.columns * grid.cell and 0 <= y - grid.south <= grid.rows * grid.cell


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise MissingDataError(f"no flight log at {path}")
    try:
        with path.open("r", encoding="utf-8-sig", newline="") as file:
            return [dict(row) for row in csv.DictReader(file, skipinitialspace=True)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file in UTF-8: {error}") from error


def _number(row: Mapping[str, str], column: str) -> float:
    """A number; not a number where the cell is empty or holds something else."""
    try:
        return float(row.get(column) or "nan")
    except ValueError:
        return math.nan


def step_of_row(row: Mapping[str, str], images: Path) -> FlightStep:
    """The step of a row in our layout; cells that are no numbers are taken for empty."""
    given = {key: row[key] for key in _OPTIONAL if key in row and row[key] not in _UNKNOWN}
    problems = [f"what is no number was left out{odd}"] if (odd := _cells(given, given)) else []
    forward, left, turn, distance = (_number(row, key) for key in ("forward", "left", "turn", "distance"))
    odometry = None
    if all(map(math.isfinite, (forward, left, turn))):
        is_given = math.isfinite(distance) and distance >= 0
        odometry = Odometry(forward, left, math.radians(turn), distance if is_given else None)
    else:
        problems.append(f"the odometry is not finite{_cells(row, ('forward', 'left', 'turn'))}")
    heading, x, y, ahead = (_number(row, key) for key in ("heading", "x", "y", "ahead"))
    return FlightStep(
        _number(row, "time"),
        odometry,
        math.radians(heading) if math.isfinite(heading) else None,
        _image(row["image"], images),
        (x, y) if math.isfinite(x) and math.isfinite(y) else None,
        tuple(problems),
        ahead if math.isfinite(ahead) else 0.0,
    )


def _cells(row: Mapping[str, str], columns: Iterable[str]) -> str:
    """The cells that hold something and no number, such as one with a decimal comma."""
    odd = [f"{key} {row[key]!r}" for key in columns if row.get(key) and not math.isfinite(_number(row, key))]
    return f" ({', '.join(odd)})" if odd else ""


def _image(name: str | None, images: Path) -> Path | None:
    """The file of a name; one that points out of the folder of images is not followed."""
    if not name:
        return None
    try:
        path = (images / name).resolve()
    except (OSError, RuntimeError, ValueError):  # no name of a file, or links in a circle
        return None
    return path if path.is_relative_to(images.resolve()) else None


def _ordered(steps: Sequence[FlightStep], path: Path) -> list[FlightStep]:
    kept: list[FlightStep] = []
    late: list[int] = []  # lines that were left out since the last step that was kept
    for line, step in enumerate(steps, start=2):  # the first has the names of the columns
        if not (kept[-1].time if kept else -math.inf) < step.time < math.inf:
            late.append(line)
            continue
        kept.append(replace(step, problems=_left_out(late, steps, kept) + step.problems))
        late = []
    if not kept:
        raise UserError(f"{path} has no row whose time is a number: it should be seconds, as 12.5")
    kept[-1] = replace(kept[-1], problems=_left_out(late, steps, kept) + kept[-1].problems)
    return kept


def _left_out(
    lines: Sequence[int], steps: Sequence[FlightStep], kept: Sequence[FlightStep]
) -> tuple[str, ...]:
    """What became of lines in a row; a clock that was set back can cost all that follow."""
    if not lines:
        return ()
    seconds = steps[lines[0] - 2].time
    is_late = math.isfinite(seconds)
    after = f"{time_text(seconds)} is not after {time_text(kept[-1].time)}" if is_late else "is no number"
    more = f", and so {'was' if len(lines) == 2 else 'were'} {counted(len(lines) - 1, 'line')} after it"
    return (
        f"line {lines[0]} was left out with its motion{more if len(lines) > 1 else ''}: its time {after}",
    )


def _visloc_steps(rows: Sequence[Mapping[str, str]], images: Path, crs: str) -> list[FlightStep]:
    transform = transform_between("EPSG:4326", crs)
    places = np.array([transform(_number(row, "lon"), _number(row, "lat")) for row in rows])
    if not np.isfinite(places).all():
        raise UserError("the log has places that are no longitude and latitude of the map's projection")
    column = next((name for name in _VISLOC_HEADINGS if name in rows[0]), None)
    if column is None:
        raise UserError(f"a log of UAV-VisLoc needs a column {' or '.join(_VISLOC_HEADINGS)}")
    compass = np.radians([_number(row, column) for row in rows])
    to_degrees = degrees_of(crs)
    norths = np.array([compass_of_grid(to_degrees, x, y) for x, y in places.tolist()])
    headings = math.pi / 2 - (compass - norths)  # the compass counts from north, not from the map's y axis
    if not np.isfinite(headings).all():
        line = int(np.flatnonzero(~np.isfinite(headings))[0]) + 2  # the first has the names of the columns
        raise UserError(f"line {line} of the log has no {column} in degrees; fill it in or remove the line")
    motions = odometry_of(places, headings, MotionNoise(), np.random.default_rng(0))
    return [
        FlightStep(
            float(k), motions[k], float(headings[k]), _image(row["filename"], images), tuple(places[k])
        )
        for k, row in enumerate(rows)
    ]


def odometry_of(
    places: NDArray[np.float64],
    headings: NDArray[np.float64],
    noise: MotionNoise,
    rng: np.random.Generator,
) -> list[Odometry]:
    """What odometry measures between poses; the first step has not moved."""
    motions = [Odometry(0.0, 0.0, 0.0)]
    for before, after, old, new in zip(places, places[1:], headings, headings[1:], strict=False):
        east, north = after - before
        distance = math.hypot(east, north)
        ahead = east * math.cos(old) + north * math.sin(old)
        left = north * math.cos(old) - east * math.sin(old)
        turn = math.remainder(new - old, 2 * math.pi)
        errors = rng.normal(size=3) * distance * [noise.place, noise.place, noise.heading]
        forward, aside, turned = (float(value) for value in np.array([ahead, left, turn]) + errors)
        motions.append(Odometry(forward, aside, turned, distance))
    return motions


def time_text(seconds: float) -> str:
    """A time with all its digits: seconds of a machine's clock have ten before the point."""
    return np.format_float_positional(seconds, trim="-")


def write_flight(path: Path, steps: Iterable[FlightStep]) -> None:
    """Write a log in our layout."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")  # quotes the name of an image that has a comma
    writer.writerow(COLUMNS)
    for step in steps:
        heading = "" if step.heading is None else f"{math.degrees(step.heading):.3f}"
        image = "" if step.image is None else step.image.name
        motion = _motion_cells(step.odometry)
        writer.writerow(
            (time_text(step.time), *motion, heading, image, *truth_cells(step), f"{step.ahead:.3f}")
        )
    write_text(path, text.getvalue())


def truth_cells(step: FlightStep) -> tuple[str, str]:
    """The true place in the columns of a table; empty where it is not known."""
    return ("", "") if step.truth is None else (f"{step.truth[0]:.3f}", f"{step.truth[1]:.3f}")


def _motion_cells(motion: Odometry | None) -> list[str]:
    if motion is None:
        return [""] * 4
    numbers = (motion.forward, motion.left, math.degrees(motion.turn), motion.travelled)
    return [f"{number:.4f}" for number in numbers]
