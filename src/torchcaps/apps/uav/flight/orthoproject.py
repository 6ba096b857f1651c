"""From oblique frames of a camera to a square of ground seen from above, at a known scale.

Coordinates are those of visual-inertial odometry: metres, gravity-aligned, z up. A camera looks along its
z axis, its x axis points to the right of the image and its y axis down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError, need

Array = NDArray[np.float64]
_POINTS = 300  # that are tracked
_FEWEST = 8  # that must be triangulated
_BACK = 1.0  # pixels by which a point may miss its start when it is tracked back
_MISS = 2.0  # pixels between a triangulated point and its track
_FARTHEST = 6.0  # altitudes from the point below the camera to the square


class NoGroundError(UserError):
    """Frames that do not show where the ground is."""


@dataclass(frozen=True)
class Camera:
    """A camera without distortion, whose axis meets the middle of the image; `focal` is in pixels."""

    focal: float
    width: int
    height: int

    @property
    def matrix(self) -> Array:
        """From directions to pixels."""
        across, down = (self.width - 1) / 2, (self.height - 1) / 2
        return np.array([[self.focal, 0, across], [0, self.focal, down], [0, 0, 1]])


@dataclass(frozen=True, eq=False)
class View:
    """A frame: its pixels (height, width, 3), where the camera was, and its axes as columns."""

    image: NDArray[np.uint8]
    position: Array
    axes: Array

    def project(self, points: Array, camera: Camera) -> tuple[Array, Array]:
        """Pixels (count, 2) and depths of points (count, 3)."""
        seen = (points - self.position) @ self.axes @ camera.matrix.T
        depth = seen[:, 2]
        return seen[:, :2] / np.where(np.abs(depth) > 1e-9, depth, 1e-9)[:, None], depth


@dataclass(frozen=True, eq=False)
class Orthophoto:
    """A square of ground.

    Attributes:
        image: (side, side, 3), ahead on top.
        forward: Metres from below the camera to the middle of the square, along the heading.
        altitude: Metres of the camera above the ground.
        heading: Radians of the way ahead, counter-clockwise from the x axis.
    """

    image: NDArray[np.uint8]
    forward: float
    altitude: float
    heading: float


def orthoproject(views: Sequence[View], camera: Camera, metres: float, side: int) -> Orthophoto:
    """The square of `metres` of ground nearest to below the last camera that it sees whole.

    Args:
        views: About ten frames, between which the camera moved.
        camera: Of all frames.
        metres: Side of the square.
        side: Its pixels.
    """
    if len(views) < 2:
        raise UserError("the height of the ground needs two frames or more")
    ground = ground_height(triangulate(track_points(views), views, camera))
    last = views[-1]
    altitude = float(last.position[2] - ground)
    if not altitude > 0:
        raise NoGroundError(f"the ground was found {-altitude:.1f} m above the camera: the poses do not fit")
    ahead = _ahead(last)
    forward = _nearest_square(last, camera, ground, metres, ahead)
    corners = _corners(last, ground, metres, ahead, forward)
    pixels, _ = last.project(corners, camera)
    return Orthophoto(_rectify(last.image, pixels, side), forward, altitude, math.atan2(ahead[1], ahead[0]))


def track_points(views: Sequence[View]) -> Array:
    """Corners of the first frame (Shi-Tomasi), followed through all (Lucas-Kanade): (count, views, 2)."""
    cv2 = need("cv2")
    grey = [cv2.cvtColor(view.image, cv2.COLOR_RGB2GRAY) for view in views]
    first = cv2.goodFeaturesToTrack(grey[0], _POINTS, 0.01, 8)
    if first is None:
        raise NoGroundError("the frames show nothing that can be tracked")
    tracks, kept = [first], np.ones(len(first), bool)
    for before, after in pairwise(grey):
        moved, found, _ = cv2.calcOpticalFlowPyrLK(before, after, tracks[-1], None)
        back, returned, _ = cv2.calcOpticalFlowPyrLK(after, before, moved, None)
        missed = np.linalg.norm(back - tracks[-1], axis=(1, 2))
        kept &= (found[:, 0] == 1) & (returned[:, 0] == 1) & (missed < _BACK)
        tracks.append(moved)
    return np.concatenate(tracks, axis=1)[kept].astype(np.float64)


def triangulate(tracks: Array, views: Sequence[View], camera: Camera) -> Array:
    """Points (count, 3) from their tracks, linearly; those that do not fit their tracks are left out."""
    matrices = []
    for view in views:
        turned = view.axes.T
        matrices.append(camera.matrix @ np.concatenate([turned, -(turned @ view.position)[:, None]], axis=1))
    stack = np.array(matrices)  # (views, 3, 4)
    equations = tracks[..., None] * stack[None, :, 2:3] - stack[None, :, :2]  # (count, views, 2, 4)
    vectors = np.linalg.svd(equations.reshape(len(tracks), 2 * len(views), 4))[2][:, -1]
    points = vectors[:, :3] / np.where(np.abs(vectors[:, 3:]) > 1e-12, vectors[:, 3:], 1e-12)
    fits = np.ones(len(points), bool)
    for number, view in enumerate(views):
        pixels, depth = view.project(points, camera)
        fits &= (depth > 0) & (np.linalg.norm(pixels - tracks[:, number], axis=1) < _MISS)
    return points[fits]


def ground_height(points: Array) -> float:
    """The height of the horizontal plane that most points lie on."""
    if len(points) < _FEWEST:
        raise NoGroundError(
            f"only {len(points)} points could be followed; the ground needs {_FEWEST} or more"
        )
    return float(np.median(points[:, 2]))


def _ahead(view: View) -> Array:
    """The horizontal direction across the rows of the image, which a vehicle that leans aside does not turn.

    Of the two it is the one to which the camera looks, or where the top of its image points.
    """
    right = view.axes[:2, 0]
    length = np.linalg.norm(right)
    if length < 1e-6:
        raise UserError("the camera lies on its side: its image has no way ahead")
    ahead = np.array([-right[1], right[0]]) / length
    looks = view.axes[:2, 2] - view.axes[:2, 1]
    return ahead if ahead @ looks >= 0 else -ahead


def _corners(view: View, ground: float, metres: float, ahead: Array, forward: float) -> Array:
    """The corners of a square on the ground: ahead left, ahead right, behind right, behind left."""
    left = np.array([-ahead[1], ahead[0]])
    middle = view.position[:2] + forward * ahead
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    flat = [middle + metres / 2 * (front * ahead + side * left) for front, side in signs]
    return np.array([[*corner, ground] for corner in flat])


def _nearest_square(view: View, camera: Camera, ground: float, metres: float, ahead: Array) -> float:
    altitude = view.position[2] - ground
    for forward in np.arange(0, _FARTHEST * altitude, metres / 50):
        corners = _corners(view, ground, metres, ahead, float(forward))
        pixels, depth = view.project(corners, camera)
        is_inside = (pixels >= 0) & (pixels <= [camera.width - 1, camera.height - 1])
        if (depth > 0).all() and is_inside.all():
            return float(forward)
    raise UserError(f"the camera sees no whole square of {metres:g} m: it flies too low or looks too far up")


def _rectify(image: NDArray[np.uint8], pixels: Array, side: int) -> NDArray[np.uint8]:
    """The image inside four corners as a square; corners are edges of pixels."""
    cv2 = need("cv2")
    low, high = -0.5, side - 0.5
    target = np.array([[low, low], [high, low], [high, high], [low, high]], np.float32)
    matrix = cv2.getPerspectiveTransform(pixels.astype(np.float32), target)
    return np.asarray(cv2.warpPerspective(image, matrix, (side, side), flags=cv2.INTER_LINEAR), np.uint8)
