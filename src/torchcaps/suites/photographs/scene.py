"""What is photographed and how: a sheet with a digit, light, and a camera."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.core import generator

Light = Literal["even", "window", "lamp", "shadow", "sharp shadow"]
_WITH_TABLE = 0.72  # of the width of a photograph that a sheet takes where the table is seen
_REACH = 0.6  # of the way from the middle to where a digit would leave the sheet
_AROUND = 0.8  # of its height that a digit may take to each side of its middle


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A digit on a sheet and how it is photographed: millimetres, degrees, and levels of 255.

    Attributes:
        size: Width and height of the photograph in pixels; the sheet fills it, unless a table is seen.
        scale: Pixels to a millimetre of the sheet, where it fills the photograph.
        digit: Height of the digit.
        pen: Width of its strokes; None is that of the test image.
        paper: Tone of the paper, and `ink`, of the strokes.
        rough: Share of the ink that is missing in places, as in pencil and chalk.
        rows: Spacing of ruled lines, and `columns`, of those across them; 0 is none.
        line: Levels between the paper and its lines.
        ring: Whether a cup left a ring.
        blots: How many dark blots there are.
        table: Tone of a table around the sheet; None where the sheet fills the photograph.
        turn: The most by which the sheet is turned, and `tilt`, by which the camera is tilted.
        light: Where the light comes from.
        exposure: Share of the full brightness.
        blur: Standard deviation of the blur, in pixels.
        noise: Standard deviation of the noise of the camera.
        shrink: How many pixels along each side become one before the photograph is stored.
        quality: Of the JPEG file.
    """

    size: tuple[int, int] = (1000, 750)
    scale: float = 6.8
    digit: float = 15.0
    pen: float | None = 0.7
    paper: float = 215.0
    ink: float = 60.0
    rough: float = 0.1
    rows: float = 0.0
    columns: float = 0.0
    line: float = 45.0
    ring: bool = False
    blots: int = 0
    table: float | None = None
    turn: float = 4.0
    tilt: float = 5.0
    light: Light = "even"
    exposure: float = 1.0
    blur: float = 0.8
    noise: float = 3.0
    shrink: int = 1
    quality: int = 90

    @property
    def is_plain(self) -> bool:
        """Whether nothing but a digit is on the sheet, and nothing around it."""
        return not (self.rows or self.columns or self.ring or self.blots) and self.table is None

    @property
    def sheet(self) -> tuple[float, float]:
        """Width and height of the sheet."""
        return self.size[0] / self.scale, self.size[1] / self.scale

    @property
    def seen_scale(self) -> float:
        """Pixels to a millimetre in the middle of the photograph."""
        return self.scale if self.table is None else _WITH_TABLE * self.scale


class Chance(NamedTuple):
    """What differs from photograph to photograph, each number from -1 to 1; the same in every scene."""

    across: float
    down: float
    turn: float
    tilt: float
    light: float
    edge: float
    tone: float
    stain: float


def draw_chance(number: int) -> Chance:
    """Of the photograph of the test image of that number."""
    rng = generator(0, "photographs suite", number)
    return Chance(*(2 * torch.rand(len(Chance._fields), generator=rng) - 1).tolist())


def middle_of_digit(scene: Scene, chance: Chance) -> tuple[float, float]:
    """Where on the sheet the digit is written, from the middle of the sheet."""
    free = [max(0.0, side / 2 - _AROUND * scene.digit) for side in scene.sheet]
    return _REACH * chance.across * free[0], _REACH * chance.down * free[1]


def sheet_from_photograph(scene: Scene, chance: Chance) -> NDArray[np.float64]:
    """The 3x3 map from pixels of the photograph to millimetres on the sheet, from its middle."""
    middle, scale = np.array(scene.size) / 2, scene.seen_scale
    from_pixels = np.array(
        [[1 / scale, 0, -middle[0] / scale], [0, 1 / scale, -middle[1] / scale], [0, 0, 1]]
    )
    axis = _turned(180 * chance.tilt)
    tilt = scene.tilt * pi / 180
    distance = max(scene.size) / scale  # of a camera whose view is as wide as it is far away
    tilted = np.array([[1, 0, 0], [0, cos(tilt), 0], [0, sin(tilt) / distance, 1]])
    to_photograph = axis.T @ tilted @ axis @ _turned(scene.turn * chance.turn)
    return np.linalg.inv(to_photograph) @ from_pixels


def _turned(degrees: float) -> NDArray[np.float64]:
    angle = degrees * pi / 180
    return np.array([[cos(angle), -sin(angle), 0], [sin(angle), cos(angle), 0], [0, 0, 1]])
