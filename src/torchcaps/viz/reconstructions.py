"""Images beside what the decoder makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from torchcaps.core import Number, UserError

from .pictures import Array, ArrayLike, place_picture, to_array, to_colours
from .style import COOL, INK, MUTED, SMALL, TEXT, TITLE, WRONG, Box, canvas, drawing_board
from .text import drawable, drawable_labels, literal, shorten


def draw_reconstructions(
    images: ArrayLike,
    reconstructions: ArrayLike,
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    class_names: Sequence[str] | None = None,
) -> Figure:
    """Inputs above their reconstructions, with label and prediction; wrong ones are framed in red.

    Args:
        images: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        reconstructions: Of the same size.
        labels: The n true classes.
        predictions: The n predicted classes.
        class_names: By default the class numbers.
    """
    above, below = to_colours(images), to_colours(reconstructions)
    truth, found = to_array(labels).astype(int), to_array(predictions).astype(int)
    if above.shape != below.shape or not len(above) == len(truth) == len(found):
        raise UserError(
            f"{len(above)} images of {above.shape[1:3]} need as many reconstructions, labels and "
            f"predictions, got {below.shape[:3]}, {truth.shape} and {found.shape}"
        )
    num_classes = int(max(truth.max(), found.max())) + 1
    names = drawable_labels(class_names, max(num_classes, len(class_names or ())))
    figure, board, boxes = _two_rows(above, below, ("input", "reconstruction"))
    for box, label, guess in zip(boxes, truth, found, strict=True):
        _caption(board, box, names[guess], None if label == guess else names[label])
    return figure


def draw_pairs(
    above: ArrayLike, below: ArrayLike, *, titles: tuple[str, str], captions: Sequence[str]
) -> Figure:
    """Pictures above others of the same size, with a word below each pair.

    Args:
        above: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        below: Of the same size.
        titles: Of the two rows.
        captions: One for each pair.
    """
    first, second = to_colours(above), to_colours(below)
    if first.shape != second.shape or len(captions) != len(first):
        raise UserError(
            f"{len(first)} pictures of {first.shape[1:3]} need as many below them and captions, got "
            f"{second.shape[:3]} and {len(captions)}"
        )
    figure, board, boxes = _two_rows(first, second, titles)
    for box, words in zip(boxes, captions, strict=True):
        _caption(board, box, words, None)
    return figure


def draw_side_by_side(
    pictures: ArrayLike, *, titles: Sequence[str], captions: Sequence[Sequence[str]]
) -> Figure:
    """Large pictures in a row, with a title above each and lines of words below it.

    Args:
        pictures: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        titles: One for each picture.
        captions: The lines of each picture.
    """
    colours = to_colours(pictures)
    if not len(colours) == len(titles) == len(captions):
        raise UserError(
            f"{len(colours)} pictures need as many titles and captions, got {len(titles)} and {len(captions)}"
        )
    side, gap, top, line, letters = 256, 16, 34, 19, 37
    lines = max(map(len, captions))
    figure = canvas(gap + len(colours) * (side + gap), top + side + 8 + lines * line + 8)
    board = drawing_board(figure)
    for number, (picture, title, words) in enumerate(zip(colours, titles, captions, strict=True)):
        left = gap + number * (side + gap)
        board.text(left, top - 10, title, fontsize=TITLE, fontweight="bold", va="baseline", color=INK)
        place_picture(board, picture, (left, top, side, side))
        for row, text in enumerate(words):
            shown = literal(shorten(drawable(text), letters))
            board.text(left, top + side + 8 + row * line, shown, fontsize=TEXT, va="top", color=MUTED)
    return figure


def _two_rows(above: Array, below: Array, titles: tuple[str, str]) -> tuple[Figure, Axes, list[Box]]:
    """Both rows with their titles, and the box around each pair."""
    left, gap = 116, 8
    cell = max(44, min(84, (900 - left - 16) // len(above) - gap))
    figure = canvas(left + len(above) * (cell + gap) + 16, 2 * cell + 84)
    board = drawing_board(figure)
    places = [left + column * (cell + gap) for column in range(len(above))]
    for top, title, stack in ((18, titles[0], above), (18 + cell + gap, titles[1], below)):
        board.text(left - 14, top + cell / 2, title, ha="right", va="center", fontsize=TEXT, color=MUTED)
        for place, picture in zip(places, stack, strict=True):
            place_picture(board, picture, (place, top, cell, cell))
    return figure, board, [(place, 18.0, float(cell), 2.0 * cell + gap) for place in places]


def draw_perturbations(images: ArrayLike, offsets: Sequence[Number], most: int | None = None) -> Figure:
    """What the decoder draws when one pose dimension moves: a row per dimension, a column per offset.

    Args:
        images: (dimensions, offsets, channels, height, width) or (dimensions, offsets, height, width).
        offsets: What was added to the pose in each column, such as -0.25 to 0.25.
        most: Draw only so many dimensions, those that change the picture most, the strongest first.
    """
    if images.ndim not in (4, 5) or images.shape[1] != len(offsets):
        raise UserError(f"need (dimensions, {len(offsets)} offsets, ...) images, got {tuple(images.shape)}")
    flat = to_colours(images.reshape(-1, *images.shape[2:]))
    colours = flat.reshape(*images.shape[:2], *flat.shape[1:])
    dimensions = range(len(colours)) if most is None else _strongest(colours, most)
    left, top, gap = 76, 40, 4
    cell = min(50, (900 - left - 16) // len(offsets) - gap)
    width = left + len(offsets) * (cell + gap) + 16
    figure = canvas(width, top + len(dimensions) * (cell + gap) + 16)
    board = drawing_board(figure)
    for row, number in enumerate(dimensions):
        y = top + row * (cell + gap)
        board.text(
            left - 12, y + cell / 2, f"dim {number + 1}", ha="right", va="center", fontsize=TEXT, color=MUTED
        )
        for column, picture in enumerate(colours[number]):
            place_picture(board, picture, (left + column * (cell + gap), y, cell, cell))
    for column, offset in enumerate(offsets):
        is_zero = abs(offset) < 1e-9
        board.text(
            left + column * (cell + gap) + cell / 2,
            top - 12,
            "0" if is_zero else f"{offset:+.2f}",
            ha="center",
            va="bottom",
            fontsize=TEXT,
            color=COOL if is_zero else MUTED,
            fontweight="bold" if is_zero else "normal",
        )
    return figure


def _strongest(colours: Array, most: int) -> Sequence[int]:
    """The dimensions along whose offsets the pictures differ most."""
    change = colours.std(1).reshape(len(colours), -1).mean(1)
    return [int(number) for number in np.argsort(-change, kind="stable")[:most]]


def _caption(board: Axes, box: Box, guess: str, label: str | None) -> None:
    """The predicted class, and the true one and a frame where they differ."""
    left, top, width, height = box
    colour, room = INK if label is None else WRONG, int(width // 8)
    middle, y = left + width / 2, top + height + 10
    words = literal(shorten(guess, room))
    board.text(middle, y, words, fontsize=TEXT + 1, fontweight="bold", ha="center", va="top", color=colour)
    if label is None:
        return
    words = f"not {literal(shorten(label, room - 3))}"
    board.text(middle, y + 18, words, fontsize=SMALL, ha="center", va="top", color=colour)
    frame = FancyBboxPatch(
        (left, top), width, height, "round,pad=3,rounding_size=5", fill=False, edgecolor=WRONG, linewidth=1.8
    )
    board.add_patch(frame)
