"""Localization in flight: images, odometry and compass in, places with their uncertainty out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import open_any

from .describe import Describer
from .filter import Backend, Estimate, FilterSettings, Likelihood, Odometry, PointMassFilter, fast_backend
from .maps import CompiledMap

_BLACK = 8  # an image whose brightest value is less shows nothing
_FARTHEST = 2e6  # metres; a longer motion between two updates is a mistake
_FLAT = 1.0  # standard deviation of the values of an image that shows nothing


@dataclass(frozen=True)
class Update:
    """What one update gave.

    Attributes:
        estimate: Place, heading and spread.
        problems: Which measurements were left out, and why.
    """

    estimate: Estimate
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoImage:
    """Stands where an image would, and says why there is none that can be used."""

    reason: str = "the image is missing"


class Localizer:
    """Follows a flight on a compiled map, one update after the other.

    A measurement that cannot be used is left out and named in the update; nothing raises in flight.

    Args:
        compiled: The map.
        describer: The one that made the map; None flies by odometry and compass alone.
        likelihood: How well a distance of descriptors fits.
        settings: Noise and limits.
        backend: Holds the belief; the fastest of the describer's device by default.
    """

    def __init__(
        self,
        compiled: CompiledMap,
        describer: Describer | None,
        likelihood: Likelihood | None,
        settings: FilterSettings | None = None,
        backend: Backend | None = None,
    ) -> None:
        if describer is not None and describer.name != compiled.info.model:
            raise UserError(
                f"{compiled.path} was compiled with {compiled.info.model}, not with {describer.name}: "
                "compile it anew, or name the run that it was compiled with"
            )
        device = torch.device("cpu") if describer is None else describer.device
        matches = describer is not None
        self._describer = describer
        self._last = 0.0  # metres of the last known motion
        self._ahead = 0.0  # of the last image
        self.filter = PointMassFilter(
            compiled.info.grid,
            backend or fast_backend(device),
            settings,
            compiled.descriptors if matches else None,
            likelihood if matches else None,
        )

    def update(
        self,
        image: NDArray[np.uint8] | NoImage | None,
        odometry: Odometry | None,
        heading: float | None = None,
        ahead: float = 0.0,
    ) -> Update:
        """Take over what was measured since the last update.

        Args:
            image: The ground as the map's crops show it, north nowhere in particular and ahead on top, as
                (height, width, 3); it is brought to the size of the network. None is short for `NoImage()`.
            odometry: The motion; where it is unknown, the belief spreads as far as the last one went.
            heading: Radians, counter-clockwise from east.
            ahead: Metres from the vehicle to the middle of the image, along the heading. The belief is about
                that middle; the estimate is that of the vehicle.
        """
        problems = []
        if odometry is not None and (length := _length(odometry)) > _FARTHEST:
            problems.append(f"a motion of {length:.3g} m was left out")
            odometry = None
        if odometry is None:
            problems.append("no odometry: the belief was spread instead")
        if heading is not None and not math.isfinite(heading):
            problems.append("the heading is not finite: it was left out")
            heading = None
        if not abs(ahead) <= _FARTHEST:
            problems.append(f"the image is {ahead:.3g} m ahead: it was left out")
            image, ahead = None, 0.0
        descriptor, problem = self._describe(NoImage() if image is None else image)
        problems += [problem] if problem else []
        found = self._follow(self._motion(odometry), heading, descriptor, ahead)
        if found.restarted:
            problems.append("the belief left the map or stayed spread out: it began anew")
        return Update(found, tuple(problems))

    def places(self) -> NDArray[np.float64]:
        """The probability of each cell as (row, column) that the vehicle is there."""
        return self.filter.places(back=self._ahead)

    def _follow(
        self, motion: Odometry, heading: float | None, descriptor: NDArray[np.float32] | None, ahead: float
    ) -> Estimate:
        """Update the filter, whose belief is about the middle of the last image.

        With an image ahead, the belief goes back to the vehicle, moves and turns with it, and goes ahead
        along the new headings: moving the middle by the measured turn would take its error for a motion.
        """
        if ahead == 0 and self._ahead == 0:
            return self.filter.update(motion, heading, descriptor)
        back = Odometry(motion.forward - self._ahead, motion.left, motion.turn, motion.travelled)
        self._ahead = ahead
        moved = self.filter.advance(back, heading)
        found = self.filter.update(Odometry(ahead, 0.0, 0.0, distance=0.0), None, descriptor)
        return replace(
            found,
            x=found.x - ahead * math.cos(found.heading),
            y=found.y - ahead * math.sin(found.heading),
            discarded=moved.discarded + found.discarded,
            restarted=moved.restarted or found.restarted,
        )

    def _motion(self, odometry: Odometry | None) -> Odometry:
        if odometry is not None:
            self._last = odometry.travelled or self._last
            return odometry
        return Odometry(0.0, 0.0, 0.0, self._last / self.filter.settings.noise.place)

    def _describe(self, image: NDArray[np.uint8] | NoImage) -> tuple[NDArray[np.float32] | None, str]:
        """The descriptor, or None and what is wrong with the image."""
        if self._describer is None:
            return None, ""
        image = _usable(image)
        if isinstance(image, NoImage):
            return None, f"{image.reason}: it was left out"
        side = self._describer.side
        if image.shape[:2] != (side, side):
            image = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BOX))
        crop = torch.from_numpy(np.ascontiguousarray(np.moveaxis(image, -1, 0)))
        crop = crop.to(self._describer.device).float() / 255
        vector = self._describer(crop[None])[0].cpu().numpy()
        return (vector, "") if np.isfinite(vector).all() else (None, "the descriptor is not finite")


def _length(odometry: Odometry) -> float:
    """Metres of a motion: the way travelled, or the straight one where that is longer."""
    return max(odometry.travelled, math.hypot(odometry.forward, odometry.left))


def _usable(image: NDArray[np.uint8] | NoImage) -> NDArray[np.uint8] | NoImage:
    """The image itself where it can be compared with the map."""
    if isinstance(image, NoImage):
        return image
    if image.ndim != 3 or image.shape[2] != 3 or image.shape[0] != image.shape[1]:
        return NoImage(f"the image has the shape {image.shape}, not that of a square in colour")
    if image.max() < _BLACK or image.std() < _FLAT:
        return NoImage("the image is black or shows nothing")
    return image


def read_image(path: Path | None) -> NDArray[np.uint8] | NoImage:
    """The pixels of a file, upright, as (height, width, 3)."""
    if path is None:
        return NoImage()
    try:
        return np.asarray(open_any(path).convert("RGB"))
    except MissingDataError:
        return NoImage()
    except UserError as error:  # of 16 bits, or damaged
        return NoImage(str(error))
