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

_LEFT, _GAP = 96, 18  # beside the first column, and between columns
_FLAT = 1e-6  # of its largest value, by which a map has to vary before it is drawn


def draw_couplings(
    images: ArrayLike,
    saliency: ArrayLike,
    activations: ArrayLike,
    *,
    contribution: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
) -> Figure:
    """A column per image: the image, its maps over it, and the length of each class capsule.

    Args:
        images: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        saliency: (n, height, width), of the image's size; each map runs from its lowest to its highest value.
        activations: (n, classes).
        contribution: A second map of each image, as `saliency`.
        labels: True classes; a wrong prediction is then named in red.
        class_names: By default the class numbers.
    """
    pictures, lengths = to_pictures(images), to_array(activations)
    heats = {"saliency\n(thesis)": to_array(saliency)}
    if contribution is not None:
        heats["contribution"] = to_array(contribution)
    _check_sizes(pictures, heats, lengths)
    names = class_labels(class_names, lengths.shape[1])
    cell = max(72, min(190, (900 - _LEFT - 16) // len(pictures) - _GAP))
    tops = [18 + row * (cell + 8) for row in range(1 + len(heats))]
    below = tops[-1] + cell
    figure = canvas(_LEFT + len(pictures) * (cell + _GAP) + 16 - _GAP, below + 152)
    colours = to_colour(pictures, pictures.ndim == 3)
    truth = [None] * len(pictures) if labels is None else to_array(labels).astype(int).tolist()
    for column in range(len(pictures)):
        x = _LEFT + column * (cell + _GAP)
        squares = [axes_at(figure, (x, top, cell, cell)) for top in tops]
        _draw_maps(squares, colours[column], [heat[column] for heat in heats.values()])
        bars = axes_at(figure, (x, below + 40, cell, 74))
        _draw_lengths(bars, lengths[column], names)
        _name_class(bars, names, int(lengths[column].argmax()), truth[column])
    rows = {name: top + cell / 2 for name, top in zip(("input", *heats), tops, strict=True)}
    _label_rows(figure, {**rows, "class\nlengths": below + 77})
    return figure


def _draw_maps(
    squares: Sequence[Axes], colours: NDArray[np.float64], heats: Sequence[NDArray[np.float64]]
) -> None:
    """An image, and below it the image under each of its maps."""
    draw_image(squares[0], colours)
    for axes, heat in zip(squares[1:], heats, strict=True):
        draw_heat(axes, colours, heat)


def _check_sizes(
    pictures: NDArray[np.float64], heats: dict[str, NDArray[np.float64]], lengths: NDArray[np.float64]
) -> None:
    shapes = [heat.shape for heat in heats.values()]
    if set(shapes) != {pictures.shape[:3]} or lengths.ndim != 2 or len(lengths) != len(pictures):
        raise UserError(
            f"{len(pictures)} images of {pictures.shape[1:3]} need maps of that size and a row of "
            f"activations each, got {' and '.join(map(str, [*shapes, lengths.shape]))}; upsample the maps "
            "first"
        )


def draw_image(axes: Axes, colours: NDArray[np.float64]) -> None:
    """RGB values over the whole of the axes, without a frame."""
    axes.imshow(colours.clip(0, 1), aspect="auto")
    axes.set_axis_off()


def draw_heat(axes: Axes, colours: NDArray[np.float64], heat: NDArray[np.float64]) -> None:
    """A map of the picture's size over the picture, from its lowest value to its highest.

    How large the difference is does not show: a caption has to say it. A flat map is no heat at all.
    """
    draw_image(axes, soften(colours, 0.55))
    strength = stretch_heat(heat)
    overlay = HEAT_MAP(strength)
    overlay[..., 3] = 0.9 * strength**1.5
    axes.imshow(overlay, aspect="auto", interpolation="bilinear")


def stretch_heat(heat: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 at the lowest value of a map and 1 at the highest; 0 everywhere where they hardly differ."""
    low, high = heat.min(), heat.max()
    if high - low <= _FLAT * max(abs(low), abs(high)):
        return np.zeros_like(heat)
    return (heat - low) / (high - low)


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


def _label_rows(figure: Figure, rows: dict[str, Number]) -> None:
    width, height = pixel_size(figure)
    for text, y in rows.items():
        figure.text(
            (_LEFT - 14) / width, 1 - y / height, text, ha="right", va="center", fontsize=TEXT, color=MUTED
        )
