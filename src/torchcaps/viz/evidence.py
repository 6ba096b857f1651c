"""Where the evidence for a class was found, as heat maps over the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchcaps.core import Number, UserError

from .pictures import Array, ArrayLike, soften, to_array, to_colours
from .style import (
    HEAT_MAP,
    INK,
    LINE,
    MUTED,
    PAPER,
    QUIET,
    SMALL,
    TEXT,
    WARM,
    WRONG,
    axes_at,
    canvas,
    write_at,
    write_beside,
)
from .text import drawable_labels, literal, shorten, width_of

_LEFT, _GAP = 96, 18  # beside the first column, and between columns
_FLAT = 1e-6  # of its largest value, by which a map has to vary before it is drawn
_MOST_CLASSES = 10  # below a single image
_EDGE, _BAR = 16, 19  # around a single image, and the height of a class below it
_CELL = {1: 220, 2: 180}  # side of a panel of a single image, by the number of maps
_LETTER = 7  # pixels that a letter below a bar is wide


def draw_evidence(
    images: ArrayLike,
    saliency: ArrayLike,
    activations: ArrayLike,
    *,
    contribution: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
) -> Figure:
    """Each image, its maps over it, and the activation of each class: a column per image.

    The panels of a single image stand side by side, above the classes.

    Args:
        images: (n, channels, height, width) or (n, height, width), as in `to_pictures`.
        saliency: (n, height, width), of the image's size; each map runs from its lowest to its highest value.
        activations: (n, classes).
        contribution: A second map of each image, as `saliency`.
        labels: True classes; a wrong prediction is then named in red.
        class_names: By default the class numbers.
    """
    colours, lengths = to_colours(images), to_array(activations)
    heats = {"saliency": to_array(saliency)}
    if contribution is not None:
        heats["contribution"] = to_array(contribution)
    _check_sizes(colours, heats, lengths)
    names = drawable_labels(class_names, lengths.shape[1])
    truth = [None] * len(colours) if labels is None else to_array(labels).astype(int).tolist()
    if len(colours) == 1:
        return _draw_one(
            colours[0], {name: heat[0] for name, heat in heats.items()}, lengths[0], names, truth[0]
        )
    return _draw_columns(colours, heats, lengths, names, truth)


def _check_sizes(colours: Array, heats: Mapping[str, Array], lengths: Array) -> None:
    shapes = [heat.shape for heat in heats.values()]
    if set(shapes) != {colours.shape[:3]} or lengths.ndim != 2 or len(lengths) != len(colours):
        raise UserError(
            f"{len(colours)} images of {colours.shape[1:3]} need maps of that size and a row of "
            f"activations each, got {' and '.join(map(str, [*shapes, lengths.shape]))}; upsample the maps "
            "first"
        )


def _draw_one(
    colours: Array, heats: Mapping[str, Array], lengths: Array, names: list[str], label: int | None
) -> Figure:
    """The image and its maps side by side, and below them the most active classes by name."""
    cell, top, below = _CELL[len(heats)], 34, 34
    right = _EDGE + (len(heats) + 1) * (cell + _GAP) - _GAP
    height = _BAR * max(4, min(len(lengths), _MOST_CLASSES))
    figure = canvas(right + _EDGE, top + cell + below + height + _EDGE)
    for position, (name, heat) in enumerate([("input", None), *heats.items()]):
        axes = axes_at(figure, (_EDGE + position * (cell + _GAP), top, cell, cell))
        draw_panel(axes, colours, heat)
        axes.set_title(name, fontsize=TEXT, color=MUTED, pad=8)
    bars = axes_at(figure, (_LEFT, top + cell + below, right - _LEFT, height))
    _draw_ranking(bars, lengths, names)
    _name_class(bars, names, int(lengths.argmax()), label, room=48)
    return figure


def _draw_columns(
    colours: Array, heats: Mapping[str, Array], lengths: Array, names: list[str], truth: Sequence[int | None]
) -> Figure:
    """A column per image: the image, its maps below, and the activations of all classes."""
    cell = max(72, min(190, (900 - _LEFT - 16) // len(colours) - _GAP))
    tops = [18 + row * (cell + 8) for row in range(1 + len(heats))]
    below = tops[-1] + cell
    figure = canvas(_LEFT + len(colours) * (cell + _GAP) + 16 - _GAP, below + 152)
    for column in range(len(colours)):
        x = _LEFT + column * (cell + _GAP)
        for top, heat in zip(tops, [None, *heats.values()], strict=True):
            axes = axes_at(figure, (x, top, cell, cell))
            draw_panel(axes, colours[column], None if heat is None else heat[column])
        bars = axes_at(figure, (x, below + 40, cell, 74))
        _draw_lengths(bars, lengths[column], names, width=cell)
        _name_class(bars, names, int(lengths[column].argmax()), truth[column], room=cell // 7)
    rows = {name: top + cell / 2 for name, top in zip(("input", *heats), tops, strict=True)}
    _label_rows(figure, {**rows, "class\nactivations": below + 77})
    return figure


def draw_panel(axes: Axes, colours: Array, heat: Array | None) -> None:
    """A picture in its own proportions, without a frame, and over it a map of its size where there is one.

    The colours run from the lowest value of the map to the highest. They do not show how large the
    differences are; a caption must. A flat map gets no colour.
    """
    shown = colours if heat is None else soften(colours, 0.55)
    axes.imshow(shown.clip(0, 1), aspect="equal")
    axes.set_axis_off()
    if heat is not None:
        axes.imshow(heat_colours(heat), aspect="equal", interpolation="bilinear")


def heat_colours(heat: Array) -> Array:
    """Colour and opacity (height, width, 4) of a map that lies over a picture."""
    strength = stretch_heat(heat)
    overlay: Array = HEAT_MAP(strength)
    overlay[..., 3] = 0.9 * strength**1.5
    return overlay


def stretch_heat(heat: Array) -> Array:
    """0 at the lowest value of a map and 1 at the highest; 0 everywhere where they hardly differ."""
    low, high = heat.min(), heat.max()
    if high - low <= _FLAT * max(abs(low), abs(high)):
        return np.zeros_like(heat)
    return (heat - low) / (high - low)


def _draw_ranking(axes: Axes, lengths: Array, names: list[str]) -> None:
    """The most active classes from top to bottom, with their numbers."""
    order = np.argsort(-lengths, kind="stable")[:_MOST_CLASSES]
    longest = max(1.0, float(lengths.max()))
    for row, number in enumerate(order):
        is_first = row == 0
        axes.barh(row, lengths[number], 0.62, color=WARM if is_first else QUIET)
        colour, end = INK if is_first else MUTED, (float(lengths[number]), row)
        write_beside(axes, end, (4, 0), f"{lengths[number]:.3f}", va="center", color=colour)
    axes.set_yticks(range(len(order)), [literal(shorten(names[number], 12)) for number in order])
    axes.set_ylim(max(len(order), 4) - 0.4, -0.6)
    axes.set_xlim(0, 1.22 * longest)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(LINE)
    axes.tick_params(length=0, labelsize=SMALL, labelcolor=MUTED, pad=5)


def _draw_lengths(axes: Axes, lengths: Array, names: list[str], *, width: Number) -> None:
    """A bar for each class, with its name where all fit into so many pixels."""
    colours = [WARM if number == lengths.argmax() else QUIET for number in range(len(lengths))]
    axes.bar(range(len(lengths)), lengths, color=colours, width=0.72)
    axes.set_ylim(0, max(1.0, lengths.max()))
    axes.set_xlim(-0.6, len(lengths) - 0.4)
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    has_room = _LETTER * max(map(width_of, names)) * len(names) <= width
    labels = [literal(name) for name in names] if has_room else []
    axes.set_xticks(range(len(labels)), labels)
    axes.set_yticks([])
    axes.tick_params(length=0, labelsize=SMALL, labelcolor=MUTED, pad=3)


def _name_class(axes: Axes, names: list[str], guess: int, label: int | None, *, room: int) -> None:
    """The class above its bars, no wider than `room` letters; a wrong one with the true one."""
    lines, colour = [shorten(names[guess], room)], INK
    if label is not None and label != guess:
        both = f"{names[guess]}, not {names[label]}"
        colour = WRONG
        lines = [both] if width_of(both) <= room else [*lines, f"not {shorten(names[label], room - 4)}"]
    size = TEXT + 1 if len(lines) == 1 and width_of(lines[0]) < min(14, room) else SMALL
    axes.set_title(literal("\n".join(lines)), fontsize=size, fontweight="bold", color=colour, pad=6)


def _label_rows(figure: Figure, rows: dict[str, Number]) -> None:
    for text, y in rows.items():
        write_at(figure, (_LEFT - 14, y), text, ha="right", va="center", fontsize=TEXT, color=MUTED)
