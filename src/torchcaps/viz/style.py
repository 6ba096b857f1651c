"""The look that all drawings share: palette, text sizes, and a canvas measured in screen pixels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO, StringIO

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from torchcaps.core.errors import UserError

PAPER = "#ffffff"
INK = "#1c2045"
MUTED = "#6a7094"
LINE = "#dde1ee"
TILE = "#f2f4fb"
COOL = "#4c5fd7"
WARM = "#f0742b"
WRONG = "#c81e4f"

INK_MAP = LinearSegmentedColormap.from_list("ink", [TILE, "#9aa1c9", INK])
COOL_MAP = LinearSegmentedColormap.from_list("cool", ["#e3e7fa", "#8793e6", COOL, "#27309a"])
HEAT_MAP = LinearSegmentedColormap.from_list("heat", ["#ffd166", WARM, "#d3264f"])

TITLE, TEXT, SMALL = 11.0, 9.0, 8.0  # points
_SCREEN_DPI = 96
ArrayLike = NDArray[np.generic] | Tensor
Number = float | int  # the run-time checker does not take one for the other


def canvas(width: Number, height: Number) -> Figure:
    """An empty figure of that many screen pixels, bound to no window and no global state."""
    return Figure(figsize=(width / _SCREEN_DPI, height / _SCREEN_DPI), dpi=_SCREEN_DPI, facecolor=PAPER)


def pixel_size(figure: Figure) -> tuple[float, float]:
    """Width and height of a figure in screen pixels."""
    width, height = figure.get_size_inches() * _SCREEN_DPI
    return float(width), float(height)


def axes_at(figure: Figure, box: tuple[Number, Number, Number, Number]) -> Axes:
    """Axes at (left, top, width, height), in screen pixels from the top left corner."""
    width, height = pixel_size(figure)
    left, top, across, down = box
    return figure.add_axes((left / width, 1 - (top + down) / height, across / width, down / height))


def drawing_board(figure: Figure) -> Axes:
    """Bare axes over the whole figure whose units are screen pixels, y downwards."""
    width, height = pixel_size(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    axes.set_axis_off()
    return axes


def place_picture(
    board: Axes, colours: NDArray[np.float64], box: tuple[Number, Number, Number, Number]
) -> AxesImage:
    """Draw RGB values at (left, top, width, height) of a drawing board."""
    left, top, width, height = box
    limits = board.get_xlim(), board.get_ylim()
    drawn = board.imshow(
        colours.clip(0, 1), extent=(left, left + width, top + height, top), aspect="auto", zorder=1
    )
    board.set(xlim=limits[0], ylim=limits[1])  # imshow moves them to the picture
    return drawn


def plain_chart(axes: Axes) -> None:
    """Muted ticks, no frame but a base line, and light horizontal rules."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, labelsize=TEXT, labelcolor=MUTED, pad=5)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_facecolor(PAPER)


def to_png(figure: Figure, scale: Number = 2) -> bytes:
    """The figure as PNG, `scale` image pixels for each screen pixel."""
    buffer = BytesIO()
    figure.savefig(
        buffer,
        format="png",
        dpi=_SCREEN_DPI * scale,
        facecolor=figure.get_facecolor(),
        metadata={"Software": None},  # the same drawing gives the same bytes under any version
        pil_kwargs={"optimize": True},
    )
    return buffer.getvalue()


def to_svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same drawing; letters are kept as letters."""
    buffer = StringIO()
    with rc_context({"svg.hashsalt": "torchcaps", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", facecolor=figure.get_facecolor(), metadata={"Date": None})
    return buffer.getvalue()


def to_data_uri(colours: NDArray[np.float64]) -> str:
    """RGB values in [0, 1] as a PNG that a page holds in itself, one pixel each."""
    buffer = BytesIO()
    Image.fromarray((colours.clip(0, 1) * 255).round().astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(buffer.getvalue()).decode('ascii')}"


def to_array(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers from a tensor on any device, or an array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def to_pictures(images: ArrayLike) -> NDArray[np.float64]:
    """Images (..., height, width) or (..., height, width, 3) in [0, 1].

    Channels come before height and width and are 1, 2 (a stereo pair, of which the left is shown) or 3, or
    there is no channel axis: (n, height, width). Bytes are divided by 255; other values that leave [0, 1],
    such as normalised images, are stretched to it together.
    """
    is_bytes = "uint8" in str(images.dtype)
    pictures = to_array(images) / (255 if is_bytes else 1)
    if pictures.ndim < 3:
        raise UserError(f"expected a stack of images, got an array of shape {pictures.shape}")
    if pictures.ndim > 3:
        if pictures.shape[-3] not in (1, 2, 3):
            raise UserError(f"images must have 1, 2 or 3 channels, got shape {pictures.shape}")
        pictures = np.moveaxis(pictures, -3, -1) if pictures.shape[-3] == 3 else pictures[..., 0, :, :]
    return _into_unit_range(pictures)


def _into_unit_range(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    if not pictures.size or not np.isfinite(pictures).all():
        raise UserError("the images are empty or hold values that are not finite")
    low, high = pictures.min(), pictures.max()
    if low >= 0 and high <= 1:
        return pictures
    return (pictures - low) / max(high - low, 1e-12)


def to_colour(pictures: NDArray[np.float64], is_grey: bool) -> NDArray[np.float64]:
    """RGB of pictures from `to_pictures`: grey ones as ink on paper."""
    return INK_MAP(pictures)[..., :3] if is_grey else pictures


def soften(colours: NDArray[np.float64], weight: Number) -> NDArray[np.float64]:
    """Colours nearer to those of an empty tile, so that marks on top stand out."""
    return (weight * colours + (1 - weight) * np.array(to_rgb(TILE))).clip(0, 1)


def shorten(name: str, most: int) -> str:
    """The name, or its start and an ellipsis, in at most `most` letters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def class_labels(names: Sequence[str] | None, count: int) -> list[str]:
    """The names of `count` classes, by default their numbers."""
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise UserError(f"{count} classes need {count} names, got {len(names)}")
    return list(names)
