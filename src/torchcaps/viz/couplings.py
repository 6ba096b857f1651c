"""Where the evidence for a class was found, as a heat map over the image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from torchcaps.core.errors import UserError

from .style import (
    HEAT_MAP,
    INK,
    LINE,
    MUTED,
    PAPER,
    SMALL,
    TEXT,
    WARM,
    WRONG,
    ArrayLike,
    Number,
    axes_at,
    canvas,
    class_labels,
    pixel_size,
    shorten,
    soften,
    to_array,
    to_colour,
    to_pictures,
)


def draw_couplings(
    images: ArrayLike,
    saliency: ArrayLike,
    activations: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
) -> Figure:
    """A column per image: the image, its saliency map over it, and the length of each class capsule.

    Args:
        images: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        saliency: (n, height, width), of the image's size; each map is shown relative to its maximum.
        activations: (n, classes).
        labels: True classes; a wrong prediction is then named in red.
        class_names: By default the class numbers.
    """
    pictures, heat, lengths = to_pictures(images), to_array(saliency), to_array(activations)
    if heat.shape != pictures.shape[:3] or lengths.ndim != 2 or len(lengths) != len(pictures):
        raise UserError(
            f"{len(pictures)} images of {pictures.shape[1:3]} need maps of that size and a row of "
            f"activations each, got {heat.shape} and {lengths.shape}; upsample the maps first"
        )
    names = class_labels(class_names, lengths.shape[1])
    left, gap = 84, 18
    cell = max(72, min(190, (900 - left - 16) // len(pictures) - gap))
    figure = canvas(left + len(pictures) * (cell + gap) + 16 - gap, 2 * cell + 178)
    colours = to_colour(pictures, pictures.ndim == 3)
    truth = [None] * len(pictures) if labels is None else to_array(labels).astype(int).tolist()
    for column in range(len(pictures)):
        x = left + column * (cell + gap)
        draw_image(axes_at(figure, (x, 18, cell, cell)), colours[column])
        draw_heat(axes_at(figure, (x, 26 + cell, cell, cell)), colours[column], heat[column])
        bars = axes_at(figure, (x, 2 * cell + 66, cell, 74))
        _draw_lengths(bars, lengths[column], names)
        _name_class(bars, names, int(lengths[column].argmax()), truth[column])
    _label_rows(figure, left, cell)
    return figure


def draw_image(axes: Axes, colours: NDArray[np.float64]) -> None:
    """RGB values over the whole of the axes, without a frame."""
    axes.imshow(colours.clip(0, 1), aspect="auto")
    axes.set_axis_off()


def draw_heat(axes: Axes, colours: NDArray[np.float64], heat: NDArray[np.float64]) -> None:
    """A map of the picture's size over the picture, relative to its maximum."""
    draw_image(axes, soften(colours, 0.55))
    relative = (heat / max(heat.max(), 1e-12)).clip(0, 1)
    overlay = HEAT_MAP(relative)
    overlay[..., 3] = 0.9 * relative**1.5
    axes.imshow(overlay, aspect="auto", interpolation="bilinear")


def _draw_lengths(axes: Axes, lengths: NDArray[np.float64], names: list[str]) -> None:
    colours = [WARM if number == lengths.argmax() else "#b9c0e4" for number in range(len(lengths))]
    axes.bar(range(len(lengths)), lengths, color=colours, width=0.72)
    axes.set_ylim(0, max(1.0, lengths.max()))
    axes.set_xlim(-0.6, len(lengths) - 0.4)
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    has_room = len(names) <= 12 and max(map(len, names)) <= 2
    axes.set_xticks(range(len(names)) if has_room else [], names if has_room else [])
    axes.set_yticks([])
    axes.tick_params(length=0, labelsize=SMALL, labelcolor=MUTED, pad=3)


def _name_class(axes: Axes, names: list[str], guess: int, label: int | None) -> None:
    is_wrong = label is not None and label != guess
    text = shorten(names[guess], 10)
    if label is not None and is_wrong:
        text += f", not {shorten(names[label], 10)}"
    size = TEXT + 1 if len(text) < 14 else SMALL
    axes.set_title(text, fontsize=size, fontweight="bold", color=WRONG if is_wrong else INK, pad=6)


def _label_rows(figure: Figure, left: Number, cell: Number) -> None:
    width, height = pixel_size(figure)
    rows = ((18 + cell / 2, "input"), (26 + 1.5 * cell, "evidence"), (2 * cell + 103, "class\nlengths"))
    for y, text in rows:
        figure.text(
            (left - 14) / width, 1 - y / height, text, ha="right", va="center", fontsize=TEXT, color=MUTED
        )
