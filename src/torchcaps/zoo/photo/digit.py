"""A photograph of a handwritten digit as MNIST has it: bright on black, 20 pixels, centred by its mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image

from torchcaps.core import counted

from .form import INNER, SIDE, centred, thickened
from .four_sides import without_boxes
from .grey import as_grey, in_one_colour
from .ink import WORKING, Ink, NoDigitError, find_ink, full_of
from .marks import Found, find_digit, label_marks, narrowed, widened, widened_by
from .paper import frame_of
from .sheet import fill_around, find_sheet
from .size import Levels, Pixels, fitting, resized, smaller, strongest_within

_BLACK = 20  # levels of 255: all pixels around a digit of MNIST are darker
_LARGEST = 1024  # longest side from which the digit is cut
_INK = 0.4  # share of the strongest ink from which on a pixel belongs to a stroke
_PALE = 0.66  # share of full ink that the strongest pixels of a digit have
_FAINT = 0.15  # and below which there is none: the lines of a notebook, a shadow's edge
_NEARER = (2, 4)  # times as near as usual, the paper of marks that run off the page
_THIN = 64  # times half the width of strokes, the longest side of a picture with a shadow that is larger
_WIDEST = 1.25  # width by height of most digits that are single and upright; few of MNIST are wider
_BRIDGED = 2  # pixels from the pieces of a stroke to the middle of the line that was erased between them
_GRAIN = 300  # other marks, from which on a mark may be one of them: drawn digits on grainy paper have fewer
_FEWEST = 16  # pixels of the photograph along the longer side of a digit, below which it may be a stain


class Prepared(NamedTuple):
    """The picture a network sees, and what was done to get it, in words."""

    picture: Image.Image
    words: str


class _Box(NamedTuple):
    top: int
    bottom: int
    left: int
    right: int


def prepare_digit(picture: Image.Image) -> Prepared:
    """Find the digit in a scan or photograph of any size, and bring it to the form of MNIST.

    A sheet of paper is cut from the table around it. The tone of the paper is taken off, ruled lines and
    marks away from the digit are left out, thin strokes are widened. An image of 28x28 pixels with a black
    frame is taken as it is. Where no digit is to be seen in grey, it is looked for in one colour.
    """
    whole, steps = as_grey(picture)
    if whole.size == (SIDE, SIDE) and frame_of(np.asarray(whole)).max() < _BLACK:
        return Prepared(whole, ", ".join([*steps, "taken as it is: 28x28 px on black"]))
    try:
        return _cut_out(whole, steps)
    except NoDigitError:
        in_colour = in_one_colour(picture)
        if in_colour is None:
            raise
        whole, word = in_colour
        return _cut_out(whole, [*steps, word])


def _cut_out(whole: Image.Image, steps: list[str]) -> Prepared:
    """The digit in a picture of any size, and these and further steps to it in words."""
    grey = _reduced(whole)
    larger = whole.width / grey.width
    sheet, known = _sheet_alone(grey)
    if sheet is not None:
        grey = sheet
        steps = [*steps, f"cut out the sheet, {_size(sheet, larger)} px"]
    ink, full, found = _find(grey, known)
    alone = _alone(np.minimum(ink.levels / full, 1), found.pixels)
    box = _box_of(alone)
    digit = alone[box.top : box.bottom, box.left : box.right]
    thick, is_at_edge = thickened(digit), _is_at_edge(alone > 0, known)
    words = [
        *steps,
        *_doubts(box, larger, is_at_edge=is_at_edge, rivals=found.rivals, others=found.others),
        "inverted (dark on bright)" if ink.is_darker else "not inverted (bright on dark)",
        *(["erased the lines of the paper"] if ink.is_ruled else []),
        *([f"left out {counted(found.others, 'other mark')}"] if found.others else []),
        f"cropped to the digit, {round(larger * (box.right - box.left))}x"
        f"{round(larger * (box.bottom - box.top))} of {whole.width}x{whole.height} px",
        *(["thin strokes widened"] if thick is not digit else []),
        f"scaled to {INNER} px and centred by mass in {SIDE}x{SIDE}",
    ]
    return Prepared(centred(thick), ", ".join(words))


def _reduced(grey: Image.Image) -> Image.Image:
    """A picture that is not larger than needed: a photograph of 48 megapixels would fill the memory."""
    size = fitting((grey.height, grey.width), _LARGEST)
    return grey if size == grey.size else grey.resize(size, Image.Resampling.BOX)


def _sheet_alone(grey: Image.Image) -> tuple[Image.Image | None, Pixels]:
    """The sheet of paper in a picture of it on a table, with its tone drawn on to a rectangle.

    And which pixels of that, or of the picture where there is no sheet, the camera saw.
    """
    levels = np.asarray(grey, dtype=np.float64)
    found = find_sheet(smaller(levels, WORKING))
    if found is None:
        return None, np.ones(levels.shape, dtype=np.bool_)
    mask = resized(found.astype(np.float64), grey.size) >= 0.5
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    place = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return Image.fromarray(fill_around(levels[place], mask[place]).round().astype(np.uint8)), mask[place]


def _size(picture: Image.Image, larger: float) -> str:
    return f"{round(larger * picture.width)}x{round(larger * picture.height)}"


class _Seen(NamedTuple):
    """Ink, which of its levels are full, and the digit in it."""

    ink: Ink
    full: float
    found: Found


def _find(grey: Image.Image, known: Pixels) -> _Seen:
    """The digit in a picture; a mark that runs off it may be a shadow, which is gone on nearer paper."""
    seen = _look(grey, known)
    if not _runs_off(seen.found.pixels):
        return seen
    for nearer in _NEARER:
        try:
            again = _look(grey, known, nearer)
        except NoDigitError as error:
            raise NoDigitError(
                "there is no digit to be seen: a shadow alone; show all of the digit, with more contrast"
            ) from error
        pixels = again.found.pixels
        before = resized(seen.found.pixels.astype(np.float64), (pixels.shape[1], pixels.shape[0])) > 0
        is_part = bool((pixels & before).any())  # of a digit that is cut off
        is_thick = bool(narrowed(pixels, 1 + max(pixels.shape) // _THIN).any())  # as paper between strokes
        if not (_runs_off(pixels) or is_part or is_thick):
            return again
    return seen


def _look(grey: Image.Image, known: Pixels, nearer: int = 1) -> _Seen:
    ink = find_ink(grey, known, nearer)
    small, strongest = smaller(ink.levels, ink.longest), strongest_within(ink.levels, ink.longest)
    is_dark = strongest >= _INK * full_of(strongest)  # stains are wide and pale, strokes are thin and dark
    full = full_of(small)
    found = _strokes(is_dark & (small >= _INK * full), small / full, bridged=_BRIDGED if ink.is_ruled else 0)
    if np.percentile(small[found.pixels], 90) < _PALE * full:
        raise NoDigitError("there is no digit to be seen: pale marks alone; take it with more contrast")
    return _Seen(ink, full, found)


def _runs_off(pixels: Pixels) -> bool:
    """Whether marks reach the edge of the picture."""
    return bool(frame_of(pixels).any())


def _strokes(is_ink: Pixels, ink: Levels, *, bridged: int) -> Found:
    """The digit with a margin, at the working size; pieces less than twice `bridged` apart are one mark."""
    if not is_ink.any():
        raise NoDigitError("there is no digit to be seen: lines alone; take it with more contrast")
    labels, boxes = without_boxes(np.where(is_ink, label_marks(widened_by(is_ink, bridged)), 0))
    found = find_digit(labels, ink)
    if found.is_stain:
        raise NoDigitError("there is no digit to be seen: stains alone; take it nearer, all in the picture")
    return found._replace(pixels=widened(found.pixels), others=found.others + boxes)


def _alone(ink: Levels, is_digit: Pixels) -> Levels:
    """The ink of the digit alone, at full size."""
    mask = resized(is_digit.astype(np.float64), (ink.shape[1], ink.shape[0])) >= 0.5
    return np.where(mask & (ink >= _FAINT), ink, 0.0)


def _box_of(alone: Levels) -> _Box:
    rows, columns = np.flatnonzero(alone.any(1)), np.flatnonzero(alone.any(0))
    return _Box(int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)


def _is_at_edge(is_ink: Pixels, known: Pixels) -> bool:
    """Whether ink reaches the edge of the picture, or of what is known of it."""
    beyond = widened(~np.pad(known, 1))[1:-1, 1:-1]
    return bool((is_ink & beyond).any())


def _doubts(box: _Box, larger: float, *, is_at_edge: bool, rivals: int, others: int) -> list[str]:
    """Why what lies in the box may be no whole, single and upright digit, or none at all."""
    longest = round(larger * max(box.right - box.left, box.bottom - box.top))
    is_wide = box.right - box.left > _WIDEST * (box.bottom - box.top)
    return [
        *(["the digit touches the edge (a part of it may be missing)"] if is_at_edge else []),
        *(["it is wider than high (several digits, or a turned page?)"] if is_wide else []),
        *([f"{counted(rivals, 'other mark')} of about its size (several digits?)"] if rivals else []),
        *([f"it is one of {others + 1:,} marks (the grain of the paper?)"] if others >= _GRAIN else []),
        *([f"it is only {longest} px large (a stain?)"] if longest < _FEWEST else []),
    ]
