"""What an oblique camera sees of a map: frames by homography, and squares of ground made from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError, need
from torchcaps.data import SeasonStack

from .orthoproject import Camera, Orthophoto, View, orthoproject

Array = NDArray[np.float64]
_STEEPEST = math.radians(60)  # the horizon must stay outside of the image
_BETWEEN = 0.02  # altitudes that the camera moves from one frame to the next
_CAMERA = Camera(focal=300.0, width=400, height=300)


@dataclass(frozen=True)
class Look:
    """How a camera looks down.

    Attributes:
        altitude: Metres above the ground.
        tilt: Radians between straight down and the axis of the camera, which points ahead.
        frames: From which a square of ground is made.
        camera: Its lens.
        noise: Standard deviation of the noise of a frame, of 255.
    """

    altitude: float
    tilt: float = 0.0
    frames: int = 10
    camera: Camera = _CAMERA
    noise: float = 4.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.altitude) and self.altitude > 0):
            raise UserError(f"a camera needs a positive altitude in metres, not {self.altitude}")
        if not 0 <= self.tilt <= _STEEPEST:
            raise UserError(f"a camera is tilted by 0 to 60 degrees, not by {math.degrees(self.tilt):g}")

    @property
    def ahead(self) -> float:
        """Metres from below the camera to where its axis meets the ground."""
        return self.altitude * math.tan(self.tilt)

    @property
    def farthest(self) -> float:
        """Metres from below the camera to the farthest ground in a corner of the image."""
        up = math.atan2(self.camera.height / 2, self.camera.focal)
        aside = self.camera.width / 2 / self.camera.focal
        return self.altitude * math.tan(self.tilt + up) * math.hypot(1, aside) + self.altitude * aside


def camera_axes(heading: float, tilt: float) -> Array:
    """Right, down and ahead of a camera, as columns."""
    flat, down = np.array([math.cos(heading), math.sin(heading), 0.0]), np.array([0.0, 0.0, -1.0])
    axis = math.cos(tilt) * down + math.sin(tilt) * flat
    right = np.array([math.sin(heading), -math.cos(heading), 0.0])
    return np.stack([right, np.cross(axis, right), axis], axis=1)


def render_view(stack: SeasonStack, camera: Camera, position: Array, axes: Array, farthest: float) -> View:
    """What a camera at (x, y, metres above the ground) sees of a map of one date; outside it is black.

    Args:
        stack: The map.
        camera: The lens.
        position: In metres of the map's projection.
        axes: Those of `camera_axes`.
        farthest: Metres from below the camera that have to be drawn.
    """
    cv2 = need("cv2")
    part, left, top = _window(stack, position, farthest)
    # from columns and rows of the part to metres around the camera, and on to pixels
    to_metres = np.array(
        [
            [stack.pixel, 0, stack.west + (left + 0.5) * stack.pixel - position[0]],
            [0, -stack.pixel, stack.north - (top + 0.5) * stack.pixel - position[1]],
            [0, 0, 1],
        ]
    )
    to_pixels = camera.matrix @ np.column_stack([axes[0], axes[1], -position[2] * axes[2]])
    size = (camera.width, camera.height)
    image = cv2.warpPerspective(part, to_pixels @ to_metres, size, flags=cv2.INTER_LINEAR)
    return View(np.asarray(image, np.uint8), position, axes)


def _window(stack: SeasonStack, position: Array, farthest: float) -> tuple[NDArray[np.uint8], int, int]:
    """The map around a place as (height, width, 3), with its first column and row."""
    column, row = ((position[0] - stack.west) / stack.pixel, (stack.north - position[1]) / stack.pixel)
    reach = farthest / stack.pixel + 2
    left, right = (int(np.clip(column + sign * reach, 0, stack.width - 1)) for sign in (-1, 1))
    top, bottom = (int(np.clip(row + sign * reach, 0, stack.height - 1)) for sign in (-1, 1))
    part = np.moveaxis(stack.images[0][:, top : bottom + 1, left : right + 1], 0, -1)
    return np.ascontiguousarray(part), left, top


def photograph_square(
    stack: SeasonStack, look: Look, pose: tuple[float, float, float], side: int, rng: np.random.Generator
) -> Orthophoto:
    """The square of ground, `side` pixels of the map wide, that frames up to a pose (x, y, heading) give."""
    x, y, heading = pose
    along = np.array([math.cos(heading), math.sin(heading), 0.0])
    axes = camera_axes(heading, look.tilt)
    views = []
    for number in range(look.frames):
        behind = _BETWEEN * look.altitude * (look.frames - 1 - number)
        position = np.array([x, y, look.altitude]) - behind * along
        view = render_view(stack, look.camera, position, axes, look.farthest)
        grain = look.noise * rng.standard_normal(view.image.shape, np.float32)
        noisy = (view.image + grain).round().clip(0, 255).astype(np.uint8)
        views.append(View(noisy, position - np.array([x, y, 0.0]), axes))
    return orthoproject(views, look.camera, side * stack.pixel, side)
