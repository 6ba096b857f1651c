"""The ink in a picture: how far each pixel is from the tone of the paper around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image

from torchcaps.core import UserError

from .lines import without_lines
from .marks import label_marks
from .paper import fills, frame_of, paper_between, usual_tone
from .size import Levels, Pixels, smaller

WORKING = 256  # longest side in which the digit is looked for; grain and texture are averaged away
_FINER = (512, 1024)  # and for one that is too small or too thin for that
_GAIN = 2.0  # times the contrast of ink where strokes are thinner than a pixel of the coarser size
_LEAST_CONTRAST = 0.08  # share of the tone of the paper
_LIGHT, _INK_BESIDE = 0.5, 0.2  # share of the strongest that light has on the page at most, and ink at least
_STRONGEST = 40  # pixels that count as full ink
_GRAIN, _FINE_GRAIN = 4.5, 9.0  # times the median deviation of the paper: its grain is nowhere that strong
_DARKEST = 0.25  # share of the full tone below which paper is no paper, but a table
_BLACK = 40.0  # levels below which darker paper makes ink no stronger


class NoDigitError(UserError):
    """A picture in which there is no digit to be seen."""


class Ink(NamedTuple):
    """The ink in a picture.

    Attributes:
        levels: The difference from the paper, as a share of its tone.
        is_darker: Whether ink is darker than the paper.
        longest: The working size in which it is seen best.
        is_ruled: Whether lines of the paper were erased.
    """

    levels: Levels
    is_darker: bool
    longest: int
    is_ruled: bool


def find_ink(grey: Image.Image, known: Pixels, nearer: int) -> Ink:
    """The ink on the known pixels, without ruled lines; its paper is looked for `nearer` times as near."""
    levels = np.asarray(grey, dtype=np.float64)
    is_darker = _is_darker(levels, usual_tone(grey, nearer))
    sign = -1 if is_darker else 1
    paper = paper_between(grey, sign, nearer)
    ink, is_ruled = without_lines(_contrast(sign * (levels - paper), paper), known)
    return Ink(np.maximum(ink, 0), is_darker, _best_size(ink), is_ruled)


def full_of(small: Levels) -> float:
    """What counts as full ink, of levels in a working size."""
    return float(np.percentile(small, 100 - _rarest(small)))


def _contrast(difference: Levels, paper: Levels) -> Levels:
    """The share of the tone of the paper: ink is as strong in a shadow as beside it."""
    return difference / np.maximum(paper, max(_DARKEST * paper.max(), _BLACK))


def _is_darker(levels: Levels, tone: Levels) -> bool:
    """Whether ink is darker than the paper, in the size in which anything differs most from its tone.

    What differs most and runs off the page may be the light beside a shadow: marks on the page that are no
    grain decide then. Where the dark side of a shadow's edge runs off too, ink is what is stronger on the
    page.
    """
    sizes = [smaller(levels - tone, longest) for longest in (WORKING, *_FINER)]
    small = max(sizes, key=lambda above: max(full_of(-above), full_of(above)))
    most, sign = max((full_of(sign * small), sign) for sign in (1, -1))
    if fills(smaller(levels, WORKING)) or not _runs_off(sign * small):
        return sign < 0
    if _runs_off(-sign * small):
        return _on_page(-sizes[0]) >= _on_page(sizes[0])  # in the size in which grain is averaged away
    is_ink = _on_page(-sign * small) < max(_INK_BESIDE * most, _grain(small))
    return is_ink == (sign < 0)


def _runs_off(small: Levels) -> bool:
    """Whether the strongest marks run off the page."""
    return _on_page(small) < _LIGHT * full_of(small)


def _grain(small: Levels) -> float:
    """What the grain of the paper comes to at most, in a working size."""
    times = _FINE_GRAIN if max(small.shape) > WORKING else _GRAIN
    return times * float(np.median(np.abs(small)))


def _on_page(small: Levels) -> float:
    """What counts as full ink without the marks that run off the page."""
    labels = label_marks(small >= _LIGHT * full_of(small))
    outside = np.setdiff1d(frame_of(labels), 0)
    return full_of(np.where(np.isin(labels, outside), 0.0, small))


def _best_size(ink: Levels) -> int:
    """The working size in which ink is seen best.

    Args:
        ink: How far each pixel is from the paper; grain is so to both sides.
    """
    longest, contrast = WORKING, 0.0
    for finer in (WORKING, *(min(size, max(ink.shape)) for size in _FINER)):
        small = smaller(ink, finer)
        if full_of(small) >= max(_LEAST_CONTRAST, _GAIN * contrast, _grain(small)):
            contrast, longest = full_of(small), finer
    if not contrast:
        raise NoDigitError(
            "there is no digit to be seen: the picture is of one tone; take it with more contrast"
        )
    return longest


def _rarest(small: Levels) -> float:
    """The percentage of all pixels that may be stronger than full ink: as many at each working size."""
    return 100 * _STRONGEST / max(small.size, WORKING**2)
