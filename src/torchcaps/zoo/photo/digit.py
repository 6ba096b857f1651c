"""A photograph of a handwritten digit as MNIST has it: bright on black, 20 pixels, centred by its mass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from torchcaps.core import UserError, counted

from .form import INNER, SIDE, centred, thickened
from .four_sides import without_boxes
from .grey import as_grey
from .marks import Found, find_digit, label_marks, widened
from .sheet import fill_around, find_sheet, threshold

_LEAST_CONTRAST = 20.0  # levels of 255 between ink and paper
_LARGEST = 1024  # longest side from which the digit is cut
_WORKING = 256  # longest side in which the digit is looked for; grain and texture are averaged away
_FINER = (512, 1024)  # and for one that is too small or too thin for that
_GAIN = 2.0  # times the contrast of ink where strokes are thinner than a pixel of the coarser size
_PAPER = 64  # longest side in which the tone of the paper is found
_FILLED = (0.2, 0.5)  # share of a picture that is ink where it is cut close to the digit: least and most
_FRAME = 0.9  # share of its outermost pixels that are paper there
_STRONGEST = 65.536  # pixels that count as full ink: a thousandth of the working size, if it is square
_GRAIN = 9.0  # times the median deviation of the paper: its grain is nowhere that strong
_DARKEST = 0.25  # share of the full tone below which paper is no paper, but a table
_INK = 0.4  # share of the strongest ink from which on a pixel belongs to a stroke
_FAINT = 0.15  # and below which there is none: the lines of a notebook, a shadow's edge
_RULED = 0.9  # share of a row or column that is ink where it is a ruled line
_WIDEST = 1.25  # width by height of most digits that are single and upright; 2 % of MNIST are wider
_FEWEST = 16  # pixels of the photograph along the longer side of a digit, below which it may be a stain
_Levels = NDArray[np.float64]
_Pixels = NDArray[np.bool_]


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
    frame is taken as it is.
    """
    whole, steps = as_grey(picture)
    if whole.size == (SIDE, SIDE) and _frame(np.asarray(whole)).max() < _LEAST_CONTRAST:
        return Prepared(whole, ", ".join([*steps, "taken as it is: 28x28 px on black"]))
    grey = _reduced(whole)
    larger = whole.width / grey.width
    sheet, known = _sheet_alone(grey)
    if sheet is not None:
        grey = sheet
        steps.append(f"cut out the sheet, {_size(sheet, larger)} px")
    levels, paper = np.asarray(grey, dtype=np.float64), _paper(grey)
    is_inverted, longest = _darker_at(levels - paper)
    ink = _contrast(paper - levels, paper) if is_inverted else _contrast(levels - paper, 255 - paper)
    small = _smaller(ink, longest)
    strength = float(np.percentile(small, 100 - _rarest(longest)))
    found = _strokes(small / strength)
    alone = _alone(np.minimum(ink / strength, 1), found.pixels)
    box = _box_of(alone)
    digit = alone[box.top : box.bottom, box.left : box.right]
    thick = thickened(digit)
    steps += [
        *_doubts(box, larger, is_at_edge=_is_at_edge(alone > 0, known), rivals=found.rivals),
        "inverted (dark on bright)" if is_inverted else "not inverted (bright on dark)",
        *([f"left out {counted(found.others, 'other mark')}"] if found.others else []),
        f"cropped to the digit, {round(larger * (box.right - box.left))}x"
        f"{round(larger * (box.bottom - box.top))} of {picture.width}x{picture.height} px",
        *(["thin strokes widened"] if thick is not digit else []),
        f"scaled to {INNER} px and centred by mass in {SIDE}x{SIDE}",
    ]
    return Prepared(centred(thick), ", ".join(steps))


def _reduced(grey: Image.Image) -> Image.Image:
    """A picture that is not larger than needed: a photograph of 48 megapixels would fill the memory."""
    size = _fitting((grey.height, grey.width), _LARGEST)
    return grey if size == grey.size else grey.resize(size, Image.Resampling.BOX)


def _sheet_alone(grey: Image.Image) -> tuple[Image.Image | None, _Pixels]:
    """The sheet of paper in a picture of it on a table, with its tone drawn on to a rectangle.

    And which pixels of that, or of the picture where there is no sheet, the camera saw.
    """
    levels = np.asarray(grey, dtype=np.float64)
    found = find_sheet(_smaller(levels))
    if found is None:
        return None, np.ones(levels.shape, dtype=np.bool_)
    mask = _resized(found.astype(np.float64), grey.size) >= 0.5
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    place = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return Image.fromarray(fill_around(levels[place], mask[place]).round().astype(np.uint8)), mask[place]


def _size(picture: Image.Image, larger: float) -> str:
    return f"{round(larger * picture.width)}x{round(larger * picture.height)}"


def _frame(levels: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])


def _fitting(shape: tuple[int, ...], longest: int) -> tuple[int, int]:
    """Width and height of a picture whose longest side is at most `longest`."""
    scale = min(1.0, longest / max(shape))
    return max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))


def _resized(levels: _Levels, size: tuple[int, int]) -> _Levels:
    is_smaller = size[0] < levels.shape[1]
    way = Image.Resampling.BOX if is_smaller else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(levels.astype(np.float32)).resize(size, way), dtype=np.float64)


def _smaller(levels: _Levels, longest: int = _WORKING) -> _Levels:
    return _resized(levels, _fitting(levels.shape, longest))


def _paper(grey: Image.Image) -> _Levels:
    """The tone of the paper at each pixel: the median around it, which keeps the edge of a shadow."""
    small = grey.resize(_fitting((grey.height, grey.width), _PAPER), Image.Resampling.BOX)
    reach = max(1, min(small.size) // (2 if _fills(np.asarray(small)) else 4))
    mirrored = Image.fromarray(np.pad(np.asarray(small), reach, mode="symmetric"))
    tone = np.asarray(mirrored.filter(ImageFilter.MedianFilter(2 * reach + 1)), dtype=np.float64)
    return _resized(tone[reach : reach + small.height, reach : reach + small.width], grey.size)


def _fills(levels: NDArray[np.uint8]) -> bool:
    """Whether a digit fills the picture: around strokes that wide, the median nearby would be ink."""
    is_bright = levels > threshold(levels.astype(np.float64))
    bright_frame = float(_frame(is_bright).mean())
    is_paper_alone = max(bright_frame, 1 - bright_frame) >= _FRAME  # the edge of a shadow crosses a frame
    return is_paper_alone and _FILLED[0] <= float((is_bright != (bright_frame > 0.5)).mean()) < _FILLED[1]


def _darker_at(above: _Levels) -> tuple[bool, int]:
    """Whether the ink is darker than the paper, and the working size in which that is seen best.

    Args:
        above: How far each pixel is above the tone of the paper.
    """
    longest, most = _WORKING, max(float(above.max()), -float(above.min()))
    is_darker, contrast = _strongest(_smaller(above), longest)
    for finer in _FINER:
        if finer > max(above.shape) or _GAIN * contrast > most:
            break
        small = _smaller(above, finer)
        found = _strongest(small, finer)
        if found[1] >= _GAIN * contrast and found[1] >= _GRAIN * np.median(np.abs(small)):
            (is_darker, contrast), longest = found, finer
    if contrast < _LEAST_CONTRAST:
        raise UserError(
            "there is no digit to be seen: the picture is of one tone; take it with more contrast"
        )
    return is_darker, longest


def _strongest(above: _Levels, longest: int) -> tuple[bool, float]:
    """Whether the pixels that differ most from the paper are darker than it, and by how many levels."""
    rarest = _rarest(longest)
    darkest, brightest = np.percentile(above, (rarest, 100 - rarest))
    return bool(-darkest >= brightest), float(max(-darkest, brightest))


def _rarest(longest: int) -> float:
    """The percentage of all pixels that may be stronger than full ink: as many at each working size."""
    return 100 * _STRONGEST / longest**2


def _contrast(difference: _Levels, full: _Levels) -> _Levels:
    """The share of the largest possible difference: ink is as strong in a shadow as beside it."""
    return np.maximum(difference, 0) / np.maximum(full, _DARKEST * full.max())


def _strokes(ink: _Levels) -> Found:
    """The digit with a margin, at the working size."""
    is_ink = _without_lines(_without_lines(ink >= _INK).T).T
    if not is_ink.any():
        raise UserError("there is no digit to be seen: lines alone; take it with more contrast")
    labels, boxes = without_boxes(label_marks(is_ink))
    found = find_digit(labels)
    return Found(widened(found.pixels), found.others + boxes, found.rivals)


def _without_lines(is_ink: _Pixels) -> _Pixels:
    """Ink without rows that are ink nearly throughout; a stroke that crosses one goes on."""
    is_line = (is_ink.mean(1) > _RULED) & is_ink[:, 0] & is_ink[:, -1]
    kept = np.flatnonzero(~is_line)
    if not len(kept):
        return is_ink
    rows = np.arange(len(is_ink))
    before = kept[np.clip(np.searchsorted(kept, rows, "right") - 1, 0, None)]
    after = kept[np.clip(np.searchsorted(kept, rows), None, len(kept) - 1)]
    return np.where(is_line[:, None], is_ink[before] & is_ink[after], is_ink)


def _alone(ink: _Levels, is_digit: _Pixels) -> _Levels:
    """The ink of the digit alone, at full size."""
    mask = _resized(is_digit.astype(np.float64), (ink.shape[1], ink.shape[0])) >= 0.5
    return np.where(mask & (ink >= _FAINT), ink, 0.0)


def _box_of(alone: _Levels) -> _Box:
    rows, columns = np.flatnonzero(alone.any(1)), np.flatnonzero(alone.any(0))
    return _Box(int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)


def _is_at_edge(is_ink: _Pixels, known: _Pixels) -> bool:
    """Whether ink reaches the edge of the picture, or of what is known of it."""
    beyond = widened(~np.pad(known, 1))[1:-1, 1:-1]
    return bool((is_ink & beyond).any())


def _doubts(box: _Box, larger: float, *, is_at_edge: bool, rivals: int) -> list[str]:
    """Why what lies in the box may be no whole, single and upright digit, or none at all."""
    longest = round(larger * max(box.right - box.left, box.bottom - box.top))
    is_wide = box.right - box.left > _WIDEST * (box.bottom - box.top)
    return [
        *(["the digit touches the edge (a part of it may be missing)"] if is_at_edge else []),
        *(["it is wider than high (several digits, or a turned page?)"] if is_wide else []),
        *([f"{counted(rivals, 'other mark')} of about its size (several digits?)"] if rivals else []),
        *([f"it is only {longest} px large (a stain?)"] if longest < _FEWEST else []),
    ]
