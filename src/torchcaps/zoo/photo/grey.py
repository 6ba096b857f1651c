"""Any picture as one of 256 greys, and what was done to get it."""

from __future__ import annotations

import numpy as np
from PIL import Image

from torchcaps.data import without_transparency

_LEAST_RANGE = 20  # levels of 255; a picture with fewer shows nothing


def as_grey(picture: Image.Image) -> tuple[Image.Image, list[str]]:
    """The picture in grey, upon white where it has clear parts, or upon black where white would hide it.

    More than 8 bits per pixel are stretched: what is darkest becomes black, what is brightest white.
    """
    if picture.mode[0] in "IF":
        return _stretched(picture), ["more than 8 bits stretched to 8"]
    on_white = without_transparency(picture)
    grey = on_white.convert("L")
    if on_white is picture:
        return grey, []
    if not _is_flat(grey):
        return grey, ["clear parts filled with white"]
    return without_transparency(picture, "black").convert("L"), ["clear parts filled with black"]


def in_one_colour(picture: Image.Image) -> tuple[Image.Image, str] | None:
    """The picture in red, green or blue alone, whichever differs most from its grey, with a word for it.

    Ink may be as bright as the paper and of another colour. There is none where all pixels are about grey.
    """
    if picture.mode[0] in "IF":
        return None
    colours = without_transparency(picture).convert("RGB")
    grey = np.asarray(colours.convert("L"), dtype=np.int16)
    bands = dict(zip(("red", "green", "blue"), colours.split(), strict=True))
    spans = {name: np.ptp(np.asarray(band, dtype=np.int16) - grey) for name, band in bands.items()}
    name = max(spans, key=lambda name: spans[name])
    return (bands[name], f"read in {name} alone") if spans[name] >= _LEAST_RANGE else None


def _is_flat(grey: Image.Image) -> bool:
    darkest, brightest = (int(level) for level in np.percentile(np.asarray(grey), (0, 100)))
    return brightest - darkest < _LEAST_RANGE


def _stretched(picture: Image.Image) -> Image.Image:
    levels = np.asarray(picture, dtype=np.float64)
    finite = levels[np.isfinite(levels)]
    darkest, brightest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    levels = np.nan_to_num(levels, nan=darkest, posinf=brightest, neginf=darkest)
    span = max(brightest - darkest, 1.0 if picture.mode[0] == "I" else 1e-12)
    return Image.fromarray(((levels - darkest) / span * 255).round().astype(np.uint8))
