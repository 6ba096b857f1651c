"""Levels of a picture at other sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Levels = NDArray[np.float64]
Pixels = NDArray[np.bool_]


def fitting(shape: tuple[int, ...], longest: int) -> tuple[int, int]:
    """Width and height of a picture whose longest side is at most `longest`."""
    scale = min(1.0, longest / max(shape))
    return max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))


def resized(levels: Levels, size: tuple[int, int]) -> Levels:
    """The levels at a width and height: means where it is smaller, drawn on where it is larger."""
    is_smaller = size[0] < levels.shape[1]
    way = Image.Resampling.BOX if is_smaller else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(levels.astype(np.float32)).resize(size, way), dtype=np.float64)


def smaller(levels: Levels, longest: int) -> Levels:
    """The means of the levels, where the longest side is at most `longest`."""
    return resized(levels, fitting(levels.shape, longest))


def strongest_within(levels: Levels, longest: int) -> Levels:
    """The largest of the levels of which `smaller` takes the mean."""
    width, height = fitting(levels.shape, longest)
    rows, columns = np.arange(height) * levels.shape[0] // height, np.arange(width) * levels.shape[1] // width
    return np.maximum.reduceat(np.maximum.reduceat(levels, rows, 0), columns, 1)
