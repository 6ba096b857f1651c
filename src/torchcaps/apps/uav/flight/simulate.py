"""Simulated flights over a map as another date shows it, with the noise of the thesis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import UserError
from torchcaps.data import SeasonStack, sample_crops
from torchcaps.storage import write_png

from ..filter import MotionNoise
from .flight import FlightStep, odometry_of, write_flight
from .orthoproject import NoGroundError
from .perspective import Look, photograph_square


@dataclass(frozen=True)
class FlightPlan:
    """How a simulated flight goes.

    Attributes:
        updates: Images that are taken.
        step: Metres between two of them.
        turn: Standard deviation in radians of the change of course at each.
        noise: Of the odometry.
        heading_sigma: Of the compass, in radians.
        pixel_noise: Standard deviation of the noise of the camera, of 255.
        seed: Of all draws.
        look: A camera that sees the ground obliquely; without one, images are cut out of the map.
    """

    updates: int = 60
    step: float = 50.0
    turn: float = math.radians(12)
    noise: MotionNoise = field(default_factory=MotionNoise)
    heading_sigma: float = math.radians(3)
    pixel_noise: float = 4.0
    seed: int = 0
    look: Look | None = None

    def __post_init__(self) -> None:
        if self.updates < 1 or not (math.isfinite(self.step) and self.step > 0):
            raise UserError(
                f"a flight has updates, and metres between them: not {self.updates} of {self.step:g} m"
            )


@dataclass(frozen=True, eq=False)
class Flight:
    """A flight with its images as (height, width, 3); None where none could be made."""

    steps: list[FlightStep]
    images: list[NDArray[np.uint8] | None]

    def save(self, folder: Path) -> None:
        """Write `flight.csv` and `images/`."""
        for step, pixels in zip(self.steps, self.images, strict=True):
            if step.image is not None and pixels is not None:
                write_png(folder / "images" / step.image.name, Image.fromarray(pixels))
        write_flight(folder / "flight.csv", self.steps)


def simulate_flight(stack: SeasonStack, side: int, plan: FlightPlan | None = None) -> Flight:
    """A flight over a map of one date, whose images show `side` pixels of it.

    Where the map does not show the ground, an update has no image.
    """
    plan = plan or FlightPlan()
    if len(stack.names) != 1:
        raise UserError(f"a flight sees one date, not {len(stack.names)}: choose one")
    rng = np.random.default_rng(plan.seed)
    places, headings = _course(stack, side, plan, rng)
    motions = odometry_of(places, headings, plan.noise, rng)
    compass = headings + rng.normal(size=len(headings)) * plan.heading_sigma
    taken = _photograph(stack, side, places, headings, plan, rng)
    shown = _shows_ground(stack, side, places, headings, taken)
    pictures = [
        picture if is_shown else _Picture(None) for picture, is_shown in zip(taken, shown, strict=True)
    ]
    steps = [
        FlightStep(
            float(k),
            motions[k],
            float(compass[k]),
            None if picture.image is None else Path(f"{k:04d}.png"),
            (float(places[k, 0]), float(places[k, 1])),
            ahead=picture.ahead,
        )
        for k, picture in enumerate(pictures)
    ]
    return Flight(steps, [picture.image for picture in pictures])


class _Picture(NamedTuple):
    """A square of ground, None where it could not be made, and the metres from the vehicle to its middle."""

    image: NDArray[np.uint8] | None
    ahead: float = 0.0


def _shows_ground(
    stack: SeasonStack,
    side: int,
    places: NDArray[np.float64],
    headings: NDArray[np.float64],
    pictures: Sequence[_Picture],
) -> NDArray[np.bool_]:
    """Whether the map knows the ground of each picture: noise over nothing would look like an image."""
    ahead = np.array([picture.ahead for picture in pictures])
    x, y = places[:, 0] + ahead * np.cos(headings), places[:, 1] + ahead * np.sin(headings)
    return stack.shows(stack.centres_of(x, y), side / 2)


def _course(
    stack: SeasonStack, side: int, plan: FlightPlan, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and headings; near the border of the map the course turns towards its middle."""
    reach = side / math.sqrt(2) * stack.pixel + (plan.look.ahead if plan.look else 0.0)
    low = np.array([stack.west + reach, stack.south + reach])
    high = np.array([stack.west + stack.width * stack.pixel - reach, stack.north - reach])
    if (high - low < 2 * plan.step).any():
        raise UserError(f"the map is too small for a flight with images of {side} pixels")
    place, course = rng.uniform(low, high), rng.uniform(0, 2 * math.pi)
    places, headings = [place], [course]
    for _ in range(plan.updates - 1):
        course = _turned(place, course + rng.normal() * plan.turn, low, high, plan.step)
        place = place + plan.step * np.array([math.cos(course), math.sin(course)])
        places.append(place)
        headings.append(course)
    return np.array(places), np.array(headings)


def _turned(
    place: NDArray[np.float64],
    course: float,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    step: float,
) -> float:
    """The course, turned as little as keeps the next place on the map."""
    for turn in np.radians(np.arange(0, 181, 15)):
        for signed in (course + turn, course - turn):
            ahead = place + step * np.array([math.cos(signed), math.sin(signed)])
            if (ahead >= low).all() and (ahead <= high).all():
                return float(signed)
    return course + math.pi


def _photograph(
    stack: SeasonStack,
    side: int,
    places: NDArray[np.float64],
    headings: NDArray[np.float64],
    plan: FlightPlan,
    rng: np.random.Generator,
) -> list[_Picture]:
    if plan.look is not None:
        poses = zip(places[:, 0], places[:, 1], headings, strict=True)
        return [_oblique(stack, plan.look, (float(x), float(y), float(h)), side, rng) for x, y, h in poses]
    centres = torch.from_numpy(stack.centres_of(places[:, 0], places[:, 1]))
    angles = torch.from_numpy(headings.astype(np.float32))
    dates = torch.zeros(len(places), dtype=torch.int64)
    crops = sample_crops(torch.from_numpy(stack.images), dates, centres, angles, side).numpy()
    pixels = np.moveaxis(crops, 1, -1) * 255 + plan.pixel_noise * rng.normal(size=(len(crops), side, side, 3))
    return [_Picture(image) for image in pixels.round().clip(0, 255).astype(np.uint8)]


def _oblique(
    stack: SeasonStack, look: Look, pose: tuple[float, float, float], side: int, rng: np.random.Generator
) -> _Picture:
    try:
        found = photograph_square(stack, look, pose, side, rng)
    except NoGroundError:  # as in flight: this update has no image
        return _Picture(None)
    return _Picture(found.image, found.forward)
