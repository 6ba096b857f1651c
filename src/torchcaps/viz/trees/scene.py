"""What a drawing of parse trees consists of: places, widths and colours that PNG and HTML share.

An arrangement fills a `Scene`; the figure and the page draw it and decide nothing about it. All lengths are
screen pixels, x to the right and y downwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex

from torchcaps.core import Number
from torchcaps.parse import Edge, ParseTree

from ..style import COOL, COOL_MAP, INK, MUTED, WARM, Box

Place = tuple[Number, Number]
Key = tuple[int, int]  # layer and index of a capsule
Kind = Literal["capsule", "class", "dot", "outside", "field", "legend"]
Align = Literal["left", "center", "right"]

MARGIN = 20  # left of everything that stands at the edge
_MOST_CLASSES = 12  # that there is room for
_EVEN = "#b7bdd6"  # a coupling that is no more than an even share
_TO_CHOSEN = LinearSegmentedColormap.from_list("chosen", [_EVEN, "#f4a472", WARM, "#d35a12"])
_TO_OTHERS = LinearSegmentedColormap.from_list("others", [_EVEN, "#8793e6", COOL, "#27309a"])


class Stroke(NamedTuple):
    """A curve between two places; it leaves and arrives upright, or else level."""

    start: Place
    end: Place
    colour: str
    width: Number
    alpha: Number
    keys: tuple[Key, ...] = ()  # the capsules that it belongs to
    is_upright: bool = False

    @property
    def curve(self) -> tuple[Place, Place, Place, Place]:
        """The four points of the cubic that it follows."""
        (x, y), (to_x, to_y) = self.start, self.end
        if self.is_upright:
            bend = 0.45 * (to_y - y)
            return (x, y), (x, y + bend), (to_x, to_y - bend), (to_x, to_y)
        bend = 0.5 * (to_x - x)
        return (x, y), (x + bend, y), (to_x - bend, to_y), (to_x, to_y)


class Shape(NamedTuple):
    """A box with round corners; a circle where the corners meet."""

    kind: Kind
    box: Box
    radius: Number
    fill: str = "none"
    edge: str = "none"
    edge_width: Number = 1.0
    is_dashed: bool = False
    keys: tuple[Key, ...] = ()


class Words(NamedTuple):
    """A line of text; y is that of its middle."""

    place: Place
    text: str
    size: Number = 12.0
    colour: str = MUTED
    is_bold: bool = False
    align: Align = "left"
    key: Key | None = None


class Caption(NamedTuple):
    """How far couplings are from an even split, in words."""

    text: str = ""
    warning: str = ""  # where a network hardly routes


@dataclass
class Scene:
    """All that is drawn, from back to front: pictures, strokes, shapes, words."""

    width: Number
    height: Number
    pictures: list[Box] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)
    caption: Caption = field(default_factory=Caption)


def circle(
    kind: Kind, centre: Place, diameter: Number, *, fill: str = "none", keys: tuple[Key, ...]
) -> Shape:
    """A circle around a place."""
    x, y = centre
    radius = diameter / 2
    return Shape(kind, (x - radius, y - radius, diameter, diameter), radius, fill=fill, keys=keys)


def title(place: Place, text: str) -> Words:
    """Words that head a part of the drawing."""
    return Words(place, text, size=16.0, colour=INK, is_bold=True)


def edge_strength(coupling: Number, parents: int) -> float:
    """How far a coupling is above an even share of all parents: 0 there and below, 1 where it takes all."""
    if parents == 1:
        return 0.0  # the only parent gets everything, whatever routing does
    return float(np.clip((coupling * parents - 1) / (parents - 1), 0, 1))


def coupling_stroke(start: Place, end: Place, strength: Number, *, is_chosen: bool = True) -> Stroke:
    """The stroke of a coupling: grey and thin at an even share, coloured and wide far above it."""
    colours = _TO_CHOSEN if is_chosen else _TO_OTHERS
    colour = to_hex(colours(float(strength) ** 0.5))
    return Stroke(start, end, colour, 0.8 + 3.2 * strength, 0.7 + 0.25 * strength)


def edge_stroke(edge: Edge, parents: int, ends: tuple[Place, Place], *, is_chosen: bool) -> Stroke:
    """The stroke of one coupling of a tree, to a layer of that many parents."""
    stroke = coupling_stroke(*ends, edge_strength(edge.coupling, parents), is_chosen=is_chosen)
    return stroke._replace(keys=((edge.layer, edge.child), (edge.layer + 1, edge.parent)))


def activation_colour(activation: Number) -> str:
    """The colour of a capsule: the darker, the more active."""
    return to_hex(COOL_MAP(float(np.clip(activation, 0, 1))))


def shown_classes(tree: ParseTree) -> list[int]:
    """The classes that there is room for: all, or the most active and the chosen one."""
    strongest = np.argsort(-np.array(tree.class_activations), kind="stable")[:_MOST_CLASSES].tolist()
    if tree.chosen not in strongest:
        strongest[-1] = tree.chosen
    return sorted(strongest)
