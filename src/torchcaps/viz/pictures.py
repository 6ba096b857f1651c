"""Images as arrays of colours, and how they are placed on a drawing."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from torchcaps.core import Number, UserError

from .style import INK_MAP, TILE, Box

ArrayLike = NDArray[np.generic] | Tensor
Array = NDArray[np.float64]


def to_array(values: ArrayLike) -> Array:
    """Numbers from a tensor on any device, or an array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def to_pictures(images: ArrayLike) -> Array:
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


def _into_unit_range(pictures: Array) -> Array:
    if not pictures.size or not np.isfinite(pictures).all():
        raise UserError("the images are empty or hold values that are not finite")
    low, high = pictures.min(), pictures.max()
    if low >= 0 and high <= 1:
        return pictures
    return (pictures - low) / max(high - low, 1e-12)


def to_colours(images: ArrayLike) -> Array:
    """RGB (n, height, width, 3) of a stack of images as in `to_pictures`; grey ones as ink on paper."""
    pictures = to_pictures(images)
    return pictures if pictures.ndim == 4 else INK_MAP(pictures)[..., :3]


def soften(colours: Array, weight: Number) -> Array:
    """Colours nearer to those of an empty tile, so that marks on top stand out."""
    return (weight * colours + (1 - weight) * np.array(to_rgb(TILE))).clip(0, 1)


def to_data_uri(colours: Array) -> str:
    """RGB values in [0, 1] as a PNG that a page holds in itself, one pixel each."""
    buffer = BytesIO()
    Image.fromarray((colours.clip(0, 1) * 255).round().astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return png_uri(buffer.getvalue())


def png_uri(content: bytes) -> str:
    """A PNG that a page holds in itself."""
    return f"data:image/png;base64,{b64encode(content).decode('ascii')}"


def fit(shape: tuple[int, ...], box: Box) -> Box:
    """The largest place in the middle of a box that has the proportions of a picture (height, width, ...)."""
    left, top, width, height = box
    scale = min(width / shape[1], height / shape[0])
    across, down = scale * shape[1], scale * shape[0]
    return left + (width - across) / 2, top + (height - down) / 2, across, down


def place_picture(board: Axes, colours: Array, box: Box, *, alpha: Number = 1.0) -> None:
    """Draw RGB values in the middle of a box of a drawing board, in their own proportions."""
    left, top, width, height = fit(colours.shape, box)
    limits = board.get_xlim(), board.get_ylim()
    extent = (left, left + width, top + height, top)
    board.imshow(colours.clip(0, 1), extent=extent, aspect="auto", zorder=1, alpha=alpha)
    board.set(xlim=limits[0], ylim=limits[1])  # imshow moves them to the picture
