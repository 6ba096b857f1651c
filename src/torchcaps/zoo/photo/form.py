"""The form that MNIST has for a digit: 20 pixels, centred by its mass in 28x28, by a pen that is not thin."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

from .size import Levels

SIDE, INNER = 28, 20
_FINE = 4  # parts of a pixel in which strokes are measured and widened
_THIN = 0.15  # share of the ink that stays when a pixel is taken off the width of thin strokes; of MNIST, 0.3


def thickened(digit: Levels) -> Levels:
    """The ink of a digit, 0 to 1, with strokes that are a pixel wider; as it is where they are not thin."""
    fine = np.pad(np.asarray(_scaled(digit, _FINE * (INNER - 1))), _FINE // 2)
    picture = Image.fromarray(fine)
    narrow = np.asarray(picture.filter(ImageFilter.MinFilter(_FINE + 1)))
    if narrow.sum(dtype=np.float64) >= _THIN * fine.sum(dtype=np.float64):
        return digit
    return np.asarray(picture.filter(ImageFilter.MaxFilter(_FINE + 1)), dtype=np.float64) / 255


def centred(digit: Levels) -> Image.Image:
    """The picture of a digit, from its ink, 0 to 1."""
    levels = np.asarray(_scaled(digit, INNER), dtype=np.float64)
    levels = levels * (255 / levels.max())
    rows, columns = np.indices(levels.shape)
    centre = (float((rows * levels).sum() / levels.sum()), float((columns * levels).sum() / levels.sum()))
    canvas = np.zeros((SIDE, SIDE))
    places = [
        min(max(round((SIDE - 1) / 2 - middle), 0), SIDE - side)
        for middle, side in zip(centre, levels.shape, strict=True)
    ]
    canvas[places[0] : places[0] + levels.shape[0], places[1] : places[1] + levels.shape[1]] = levels
    return Image.fromarray(canvas.round().astype(np.uint8))


def _scaled(digit: Levels, longest: int) -> Image.Image:
    height, width = digit.shape
    scale = longest / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    way = Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR
    return Image.fromarray((255 * digit).astype(np.uint8)).resize(size, way)
