"""The tone of the paper at each pixel of a picture, as it would be without ink."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from .sheet import threshold
from .size import Levels, fitting, resized, smaller

_COARSE = 64  # longest side in which the usual tone around a pixel is found
_FINE = 256  # and in which the paper between strokes is
_AROUND, _FILLED_AROUND = 4, 2  # parts of the shorter side, of which one is as far as the usual tone looks
_BESIDE, _FILLED_BESIDE = 5, 3  # and the paper between strokes
_FILLED = (0.2, 0.5)  # share of a picture that is ink where it is cut close to the digit: least and most
_FRAME = 0.9  # share of its outermost pixels that are paper there
_SHADED = 0.8  # share of the light that is left in a shadow at most; light that falls off slowly leaves more


def usual_tone(grey: Image.Image, nearer: int) -> Levels:
    """The median around each pixel, which is paper, whether ink is darker or brighter.

    Args:
        grey: The picture.
        nearer: How many times as near as usual to look.
    """
    small = grey.resize(fitting((grey.height, grey.width), _COARSE), Image.Resampling.BOX)
    part = _FILLED_AROUND if fills(np.asarray(small)) else _AROUND
    reach = max(1, min(small.size) // part // nearer)
    mirrored = Image.fromarray(np.pad(np.asarray(small), reach, mode="symmetric"))
    median = np.asarray(mirrored.filter(ImageFilter.MedianFilter(2 * reach + 1)), dtype=np.float64)
    own = median[reach : reach + small.height, reach : reach + small.width]
    return _between(np.asarray(grey, dtype=np.float64), own, 2)


def paper_between(grey: Image.Image, sign: int, nearer: int) -> Levels:
    """The paper without ink that is narrower than a square: slopes and edges of the light stay as they are.

    Args:
        grey: The picture.
        sign: -1 where ink is darker than paper, 1 where it is brighter.
        nearer: How many times as small as usual to make the square.
    """
    levels = np.asarray(grey, dtype=np.float64)
    small = -sign * smaller(levels, _FINE)
    part = _FILLED_BESIDE if fills(smaller(levels, _COARSE)) else _BESIDE
    reach = max(2, min(small.shape) // part // nearer)
    beyond = np.pad(small, 2 * reach, mode="symmetric", reflect_type="odd")  # so that slopes go on
    paper = -_largest(-_largest(beyond, reach), reach)
    return _between(levels, -sign * (paper + np.median(small - paper)), 1)  # grain lifts all of it


def frame_of(levels: NDArray[Any]) -> NDArray[Any]:
    """The outermost pixels."""
    return np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])


def fills(levels: NDArray[Any]) -> bool:
    """Whether a digit fills the picture: around strokes that wide, what lies nearby would be ink."""
    is_bright = levels > threshold(levels.astype(np.float64))
    bright_frame = float(frame_of(is_bright).mean())
    is_paper_alone = max(bright_frame, 1 - bright_frame) >= _FRAME  # the edge of a shadow crosses a frame
    return is_paper_alone and _FILLED[0] <= float((is_bright != (bright_frame > 0.5)).mean()) < _FILLED[1]


def _between(levels: Levels, paper: Levels, reach: int) -> Levels:
    """The paper at the size of the levels.

    Where the edge of a shadow lies is known in coarse pixels only: near it any tone between light and shadow
    is paper.
    """
    framed = np.pad(paper, reach, mode="edge")
    darkest, brightest = -_largest(-framed, reach), _largest(framed, reach)
    is_edge = darkest < _SHADED * brightest
    bounds = (np.where(is_edge, bound, paper) for bound in (darkest, brightest))
    return np.clip(levels, *(resized(bound, (levels.shape[1], levels.shape[0])) for bound in bounds))


def _largest(levels: Levels, reach: int) -> Levels:
    """The largest of the levels in the square around each pixel that lies at least `reach` from the edges."""
    for axis in (0, 1):
        levels = sliding_window_view(levels, 2 * reach + 1, axis).max(-1)
    return levels
