"""Saliency maps of several networks below the images they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from torchcaps.core import UserError

from .evidence import draw_panel
from .pictures import Array, ArrayLike, to_array, to_colours
from .style import INK, MUTED, TEXT, TITLE, axes_at, canvas, write_at


class SaliencyPanel(NamedTuple):
    """Images, and a map of the same size for each image and network."""

    images: ArrayLike  # (n, channels, height, width) or (n, height, width)
    maps: Mapping[str, ArrayLike]  # by the name of the network, (n, height, width)
    label: str = "image"  # what each of the images is


def draw_saliency(panels: Mapping[str, SaliencyPanel]) -> Figure:
    """A block for each panel: its images in a row, and a row of maps over them for each network."""
    if not panels:
        raise UserError("there are no images to draw")
    left, top, gap = 132, 34, 6
    most = max(len(panel.images) for panel in panels.values())
    cell = max(48, min(96, (900 - left - 16) // most - gap))
    heights = [top + (1 + len(panel.maps)) * (cell + gap) for panel in panels.values()]
    figure = canvas(left + most * (cell + gap) + 16, sum(heights) + 12)
    starts = np.cumsum([0, *heights[:-1]])
    for (title, panel), start in zip(panels.items(), starts.tolist(), strict=True):
        write_at(figure, (left, start + 18), title, va="center", fontsize=TITLE, color=INK)
        colours = to_colours(panel.images)
        for row, (name, heat) in enumerate([(panel.label, None), *_heats(panel, colours)]):
            y = start + top + row * (cell + gap)
            write_at(
                figure, (left - 12, y + cell / 2), name, ha="right", va="center", fontsize=TEXT, color=MUTED
            )
            for column, picture in enumerate(colours):
                axes = axes_at(figure, (left + column * (cell + gap), y, cell, cell))
                draw_panel(axes, picture, None if heat is None else heat[column])
    return figure


def _heats(panel: SaliencyPanel, colours: Array) -> Iterator[tuple[str, Array]]:
    """The maps of a panel by the name of their network, each of the size of the images."""
    for name, maps in panel.maps.items():
        heat = to_array(maps)
        if heat.shape != colours.shape[:3]:
            raise UserError(
                f"{name}: {len(colours)} images of {colours.shape[1:3]} need maps of that size, "
                f"got {heat.shape}; upsample the maps first"
            )
        yield name, heat
