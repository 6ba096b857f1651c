"""A localized flight: its belief over the map, its errors, and a page that replays it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from .markup import cards, fill, read_template, to_script
from .pictures import Array, to_data_uri
from .style import COOL, INK, MUTED, TEXT, WARM, axes_at, canvas, name_marks, plain_chart

_WIDTH, _LONGEST = 900, 120  # screen pixels of a picture; cells of a belief on the page
_TRUTH = "#ffffff"
_STRIP, _SCALE = 88, 31  # screen pixels below a map: for scale and names together, for the scale alone
_BLANK = 200  # pixels of a map without a picture
_STRIPE, _STRIPES = 6, ("#8a8f98", "#6d727b")  # pixels and tones over ground that is unknown
_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1.2))


@dataclass(frozen=True, eq=False)
class FlightDrawing:
    """What is drawn; places are shares of the map's width from the west and of its height from the north.

    Attributes:
        title: Above the page.
        picture: Of the map in [0, 1], as (height, width, 3); None leaves it blank.
        estimates: (updates, 2).
        truth: A place for each update, or None.
        sigmas: Metres.
        errors: Metres, or None.
        words: What went wrong at each update.
        beliefs: Probability of cells, north up, by the number of the update.
        metres: Width and height of the map.
        converged: Whether each estimate says where the vehicle is; before that it is a mean of many places.
        unknown: Cells without known ground, north up; None where there are none.
    """

    title: str
    picture: Array | None
    estimates: NDArray[np.float64]
    truth: Sequence[tuple[float, float] | None]
    sigmas: Sequence[float]
    errors: Sequence[float | None]
    words: Sequence[str]
    beliefs: Mapping[int, NDArray[np.float64]]
    metres: tuple[float, float]
    converged: Sequence[bool]
    unknown: NDArray[np.bool_] | None = None

    @property
    def ground(self) -> Array:
        """The picture, or one tone on which the truth is seen; stripes where the ground is unknown."""
        picture = self.picture
        if picture is None:
            picture = np.broadcast_to(np.array(to_rgb(MUTED)), (_BLANK, _BLANK, 3)).astype(np.float64)
        return picture if self.unknown is None else _striped(picture, self.unknown)


def _striped(picture: Array, unknown: NDArray[np.bool_]) -> Array:
    """The picture with stripes over the cells that are unknown."""
    height, width = picture.shape[:2]
    row, column = np.arange(height)[:, None], np.arange(width)
    cells = unknown[row * unknown.shape[0] // height, column * unknown.shape[1] // width]
    is_light = (row + column) // _STRIPE % 2 == 0
    stripes = np.where(is_light[..., None], to_rgb(_STRIPES[0]), to_rgb(_STRIPES[1]))
    return np.where(cells[..., None], stripes, picture)


def draw_belief(drawing: FlightDrawing) -> Figure:
    """The last belief over the map, north up, with the estimated and the true trajectory, and a scale."""
    width, height = drawing.metres
    tall = _WIDTH * height / width
    figure = canvas(_WIDTH, tall + _STRIP)
    axes = axes_at(figure, (0, 0, _WIDTH, tall))
    axes.set_axis_off()
    axes.imshow(drawing.ground, extent=(0, 1, 1, 0), aspect="auto")
    if drawing.beliefs:
        last = drawing.beliefs[max(drawing.beliefs)]
        axes.imshow(_heat(last), extent=(0, 1, 1, 0), aspect="auto", interpolation="nearest")
    known = np.array([place for place in drawing.truth if place is not None]).reshape(-1, 2)
    axes.plot(*known.T, color=_TRUTH, linewidth=2, linestyle=_DASHED)
    for style, is_found in (("solid", True), (_DOTTED, False)):
        axes.plot(*_parts(drawing, is_found=is_found), color=WARM, linewidth=2, linestyle=style)
    axes.set(xlim=(0, 1), ylim=(1, 0))
    _name_lines(figure, has_truth=bool(len(known)), has_gaps=drawing.unknown is not None)
    _draw_scale(axes_at(figure, (0, tall, _WIDTH, _SCALE)), width)
    return figure


def _parts(drawing: FlightDrawing, *, is_found: bool) -> Array:
    """Estimates (2, places) that lead to a converged one, or to one that is not, with gaps between them."""
    gap = np.full(2, np.nan)
    pairs = zip(drawing.estimates, drawing.estimates[1:], drawing.converged[1:], strict=False)
    places = [place for start, end, found in pairs if found == is_found for place in (start, end, gap)]
    return np.array(places).reshape(-1, 2).T


def _name_lines(figure: Figure, *, has_truth: bool, has_gaps: bool) -> None:
    marks: dict[str, Artist] = {
        "estimate": Line2D([], [], color=WARM, linewidth=2),
        "estimate before the belief has converged": Line2D(
            [], [], color=WARM, linewidth=2, linestyle=_DOTTED
        ),
        "last belief": Patch(color="#ffd166"),
    }
    if has_truth:  # its line is white, and so is the paper
        marks["truth (white)"] = Line2D([], [], color=MUTED, linestyle=_DASHED)
    if has_gaps:
        marks["no data"] = Patch(facecolor=_STRIPES[1], edgecolor=_STRIPES[0], hatch="////")
    name_marks(figure, marks)


def _draw_scale(axes: Axes, metres: float) -> None:
    """A bar of a round length, about a sixth of the map's width."""
    axes.set(xlim=(0, metres), ylim=(0, 1))
    axes.set_axis_off()
    length = round_length(metres / 6)
    left = metres / 60
    axes.plot([left, left + length], [0.5, 0.5], color=INK, linewidth=3, solid_capstyle="butt")
    name = f"{length:,g} m, north is up"
    axes.text(2 * left + length, 0.45, name, va="center", fontsize=TEXT, color=INK)


def round_length(metres: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not longer."""
    power = 10.0 ** np.floor(np.log10(metres))
    return float(max(times * power for times in (1, 2, 5) if times * power <= metres))


def draw_errors(drawing: FlightDrawing) -> Figure:
    """Error, where the truth is known, and spread of the belief over the updates."""
    figure = canvas(_WIDTH, 330)
    axes = axes_at(figure, (64, 44, _WIDTH - 96, 206))
    plain_chart(axes, "Error and spread of the belief", across="update", unit="metres")
    marks: dict[str, Artist] = {"spread (sigma)": _curve(axes, drawing.sigmas, COOL)}
    if any(error is not None for error in drawing.errors):
        marks["error"] = _curve(axes, drawing.errors, WARM)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:g}")
    name_marks(figure, marks)
    return figure


def _curve(axes: Axes, values: Sequence[float | None], colour: str) -> Line2D:
    heights = [np.nan if value is None else value for value in values]
    return axes.plot(np.arange(1, len(values) + 1), heights, color=colour, linewidth=2)[0]


def flight_page(drawing: FlightDrawing, numbers: Mapping[str, object]) -> str:
    """One page, which needs nothing else, that replays a flight over its map."""
    facts = {
        "estimates": drawing.estimates.round(5).tolist(),
        "truth": [None if place is None else [round(v, 5) for v in place] for place in drawing.truth],
        "sigmas": [round(value, 2) for value in drawing.sigmas],
        "errors": [None if value is None else round(value, 2) for value in drawing.errors],
        "words": list(drawing.words),
        "metres": list(drawing.metres),
        "converged": list(drawing.converged),
        "beliefs": {str(k): to_data_uri(_heat(smaller_belief(each))) for k, each in drawing.beliefs.items()},
    }
    return fill(
        "flight.html",
        title=escape(drawing.title),
        style=read_template("report.css") + read_template("flight.css"),
        numbers=cards({name: _shown(value) for name, value in numbers.items()}),
        picture=to_data_uri(drawing.ground),
        ratio=f"{drawing.metres[0]:.0f} / {drawing.metres[1]:.0f}",
        width=f"{drawing.metres[0]:,.0f}",
        gaps=""
        if drawing.unknown is None
        else " Striped ground is without data, and no image is compared with it.",
        facts=to_script(facts),
        script=read_template("flight.js"),
    )


def _shown(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def smaller_belief(belief: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest probability of each block of cells, so that a narrow peak stays visible.

    Blocks differ by a cell where they must: the picture has to end where the map does.
    """
    step = -(-max(belief.shape) // _LONGEST)
    for axis, cells in enumerate(belief.shape):
        blocks = -(-cells // step)
        belief = np.maximum.reduceat(belief, np.arange(blocks) * cells // blocks, axis=axis)
    return belief


def _heat(belief: NDArray[np.float64]) -> Array:
    """Colour and opacity (height, width, 4) of each cell: the root of its share of the peak."""
    strength = np.sqrt(belief / max(belief.max(), 1e-300))
    colour = (
        np.array(to_rgb(COOL)) * (1 - strength[..., None]) + np.array(to_rgb("#ffd166")) * strength[..., None]
    )
    return np.concatenate([colour, 0.85 * strength[..., None]], axis=-1)
