"""The ink in a picture: how far each pixel is from the tone of the paper around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from torchcaps.core import UserError

from .lines import without_lines
from .sheet import threshold
from .size import Levels, fitting, resized, smaller

WORKING = 256  # longest side in which the digit is looked for; grain and texture are averaged away
_FINER = (512, 1024)  # and for one that is too small or too thin for that
_GAIN = 2.0  # times the contrast of ink where strokes are thinner than a pixel of the coarser size
_LEAST_CONTRAST = 20.0  # levels of 255 between ink and paper
_PAPER = 64  # longest side in which the tone of the paper is found
_EDGE = 5  # pixels there, within which a shadow begins
_SHADED = 0.8  # share of the light that is left in it at most; light that falls off slowly leaves more
_FILLED = (0.2, 0.5)  # share of a picture that is ink where it is cut close to the digit: least and most
_FRAME = 0.9  # share of its outermost pixels that are paper there
_STRONGEST = 65.536  # pixels that count as full ink: a thousandth of the working size, if it is square
_GRAIN = 9.0  # times the median deviation of the paper: its grain is nowhere that strong
_DARKEST = 0.25  # share of the full tone below which paper is no paper, but a table


class NoDigitError(UserError):
    """A picture in which there is no digit to be seen."""


class Ink(NamedTuple):
    """The ink in a picture.

    Attributes:
        levels: The share of the largest possible difference from the paper.
        is_darker: Whether ink is darker than the paper.
        longest: The working size in which it is seen best.
        is_ruled: Whether lines of the paper were erased.
    """

    levels: Levels
    is_darker: bool
    longest: int
    is_ruled: bool

    def full(self, small: Levels) -> float:
        """What counts as full ink, of levels in the working size."""
        return float(np.percentile(small, 100 - _rarest(self.longest)))


def find_ink(grey: Image.Image, known: NDArray[np.bool_], nearer: int) -> Ink:
    """The ink on the known pixels, without ruled lines; its paper is looked for `nearer` times as near."""
    paper = _paper(grey, nearer)
    above = np.asarray(grey, dtype=np.float64) - paper
    sign = -1 if _strongest(smaller(above, WORKING), WORKING)[0] else 1
    rest, is_ruled = without_lines(sign * above, known)
    is_darker, longest = _darker_at(sign * rest)
    ink = _contrast(-sign * rest, paper) if is_darker else _contrast(sign * rest, 255 - paper)
    return Ink(ink, is_darker, longest, is_ruled)


def frame_of(levels: NDArray[Any]) -> NDArray[Any]:
    """The outermost pixels."""
    return np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])


def _paper(grey: Image.Image, nearer: int) -> Levels:
    """The tone of the paper at each pixel: the median around it, which keeps the edge of a shadow.

    Where this edge lies is known in coarse pixels only: near it any tone between light and shadow is paper.
    """
    small = grey.resize(fitting((grey.height, grey.width), _PAPER), Image.Resampling.BOX)
    reach = max(1, min(small.size) // (2 if _fills(np.asarray(small)) else 4) // nearer)
    mirrored = Image.fromarray(np.pad(np.asarray(small), reach, mode="symmetric"))
    median = mirrored.filter(ImageFilter.MedianFilter(2 * reach + 1))
    around = [
        median,
        median.filter(ImageFilter.MinFilter(_EDGE)),
        median.filter(ImageFilter.MaxFilter(_EDGE)),
    ]
    height, width = reach + small.height, reach + small.width
    tone, darkest, brightest = (np.asarray(each, float)[reach:height, reach:width] for each in around)
    is_edge = darkest < _SHADED * brightest
    bounds = [resized(np.where(is_edge, bound, tone), grey.size) for bound in (darkest, brightest)]
    return np.clip(np.asarray(grey, dtype=np.float64), *bounds)


def _fills(levels: NDArray[np.uint8]) -> bool:
    """Whether a digit fills the picture: around strokes that wide, the median nearby would be ink."""
    is_bright = levels > threshold(levels.astype(np.float64))
    bright_frame = float(frame_of(is_bright).mean())
    is_paper_alone = max(bright_frame, 1 - bright_frame) >= _FRAME  # the edge of a shadow crosses a frame
    return is_paper_alone and _FILLED[0] <= float((is_bright != (bright_frame > 0.5)).mean()) < _FILLED[1]


def _darker_at(above: Levels) -> tuple[bool, int]:
    """Whether the ink is darker than the paper, and the working size in which that is seen best.

    Args:
        above: How far each pixel is above the tone of the paper.
    """
    longest, most = WORKING, max(float(above.max()), -float(above.min()))
    is_darker, contrast = _strongest(smaller(above, longest), longest)
    for finer in _FINER:
        least = _LEAST_CONTRAST if contrast < _LEAST_CONTRAST else _GAIN * contrast
        if finer > max(above.shape) or least > most:
            break
        small = smaller(above, finer)
        found = _strongest(small, finer)
        if found[1] >= max(least, _GRAIN * float(np.median(np.abs(small)))):
            (is_darker, contrast), longest = found, finer
    if contrast < _LEAST_CONTRAST:
        raise NoDigitError(
            "there is no digit to be seen: the picture is of one tone; take it with more contrast"
        )
    return is_darker, longest


def _strongest(above: Levels, longest: int) -> tuple[bool, float]:
    """Whether the pixels that differ most from the paper are darker than it, and by how many levels."""
    rarest = _rarest(longest)
    darkest, brightest = np.percentile(above, (rarest, 100 - rarest))
    return bool(-darkest >= brightest), float(max(-darkest, brightest))


def _rarest(longest: int) -> float:
    """The percentage of all pixels that may be stronger than full ink: as many at each working size."""
    return 100 * _STRONGEST / longest**2


def _contrast(difference: Levels, full: Levels) -> Levels:
    """The share of the largest possible difference: ink is as strong in a shadow as beside it."""
    return np.maximum(difference, 0) / np.maximum(full, _DARKEST * full.max())
