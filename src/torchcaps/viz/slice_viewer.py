"""A page that scrolls through the slices of a volume, with a mask on top and a list of what was found."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

import numpy as np
from jaxtyping import Shaped, UInt8
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import UserError

from .markup import element, fill, paragraphs, read_template, row, to_script
from .style import WARM

MOST_SLICES = 160  # that a page holds
LONGEST_SIDE = 384  # pixels of a slice on the page
_JPEG_QUALITY = 85


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the list beside the slices: where it is, and the cells of its row."""

    slice: int
    row: float  # of the whole slice, in pixels
    column: float
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SliceView:
    """All that the page shows.

    Attributes:
        title: Of the page.
        text: Below it; an empty line starts a new paragraph.
        notice: At the top and the bottom.
        columns: Heads of the list.
        findings: Its lines.
        captions: Of single slices by their number, such as their height in the body.
        aspect: Height of a pixel over its width.
    """

    title: str
    text: str
    notice: str
    columns: tuple[str, ...]
    findings: Sequence[Finding] = ()
    captions: Mapping[int, str] | None = None
    aspect: float = 1.0


def slice_viewer(
    grey: UInt8[np.ndarray, "slices rows columns"],
    labels: Shaped[np.ndarray, "slices rows columns"],
    view: SliceView,
) -> str:
    """One HTML page that needs nothing beside itself.

    At most 160 slices are in it, no side longer than 384 pixels, as JPEG; the page says how many and how
    large. Slices with something on them come first, the others are spread evenly.

    Args:
        grey: The slices.
        labels: Where it is not 0, something was found.
        view: The words around them.
    """
    if grey.shape != labels.shape or not grey.size:
        raise UserError(f"slices of the size {grey.shape} do not fit labels of the size {labels.shape}")
    is_marked: NDArray[np.bool_] = np.asarray(labels.any((1, 2)))
    shown = choose_slices(is_marked, [finding.slice for finding in view.findings])
    width, height = _page_size(grey.shape[1:], view.aspect)
    frames = [_frame(grey[number], labels[number], (width, height)) for number in shown]
    captions = view.captions or {}
    data = {
        "slices": [
            {"number": number, "caption": captions.get(number, ""), **frame}
            for number, frame in zip(shown, frames, strict=True)
        ],
        "marks": [_mark(finding, grey.shape) for finding in view.findings],
    }
    return fill(
        "slices.html",
        title=escape(view.title),
        style=read_template("slices.css"),
        text=paragraphs(view.text),
        notice=escape(view.notice),
        size=escape(_held(len(shown), grey.shape, (width, height))),
        last=str(len(shown) - 1),
        width=str(width),
        height=str(height),
        table=_table(view),
        data=to_script(data),
        script=read_template("slices.js"),
    )


def choose_slices(is_marked: NDArray[np.bool_], wanted: Sequence[int], most: int = MOST_SLICES) -> list[int]:
    """Numbers of at most `most` slices: those wanted, then marked ones, then others, each spread evenly."""
    count = len(is_marked)
    chosen: list[int] = []
    for group in (wanted, np.flatnonzero(is_marked).tolist(), range(count)):
        left = [number for number in sorted(set(group)) if number not in set(chosen)]
        room = min(most - len(chosen), len(left))
        chosen += [left[round(place)] for place in np.linspace(0, len(left) - 1, room)] if room else []
    return sorted(chosen)


def _page_size(shape: tuple[int, ...], aspect: float) -> tuple[int, int]:
    """Width and height on the page, in the proportions of the body; nothing is enlarged."""
    height, width = shape[0] * max(1.0, aspect), shape[1] / min(1.0, aspect)
    scale = min(1.0, LONGEST_SIDE / max(height, width))
    return max(1, round(scale * width)), max(1, round(scale * height))


def _frame(grey: NDArray[np.uint8], labels: NDArray[np.generic], size: tuple[int, int]) -> dict[str, str]:
    picture = Image.fromarray(np.ascontiguousarray(grey)).resize(size, Image.Resampling.BILINEAR)
    frame = {"image": _uri(picture, "JPEG", quality=_JPEG_QUALITY)}
    if labels.any():
        frame["mask"] = _uri(_overlay(labels != 0, size), "PNG", optimize=True)
    return frame


def _overlay(mask: NDArray[np.bool_], size: tuple[int, int]) -> Image.Image:
    """A tint with a solid outline, clear elsewhere."""
    cover = Image.fromarray(mask.astype(np.uint8) * 255).resize(size, Image.Resampling.BILINEAR)
    inside = np.pad(np.asarray(cover) >= 128, 1)
    core = inside[1:-1, 1:-1] & inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    alpha = np.where(core, 90, np.where(inside[1:-1, 1:-1], 255, 0)).astype(np.uint8)
    colour = (np.array(to_rgb(WARM)) * 255).astype(np.uint8)
    return Image.fromarray(np.dstack([np.broadcast_to(colour, (*alpha.shape, 3)), alpha]))


def _uri(picture: Image.Image, kind: str, **options: object) -> str:
    buffer = BytesIO()
    picture.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{b64encode(buffer.getvalue()).decode('ascii')}"


def _mark(finding: Finding, shape: tuple[int, ...]) -> dict[str, int | float]:
    """Where the pointer goes, in parts of the picture."""
    return {
        "slice": finding.slice,
        "x": round((finding.column + 0.5) / shape[2], 4),
        "y": round((finding.row + 0.5) / shape[1], 4),
    }


def _held(shown: int, shape: tuple[int, ...], size: tuple[int, int]) -> str:
    which = "All" if shown == shape[0] else f"{shown} of"
    slices = "The only slice is" if shape[0] == 1 else f"{which} {shape[0]} slices are"
    return f"{slices} in this page, as JPEG of {size[0]}x{size[1]} pixels from {shape[2]}x{shape[1]}."


def _table(view: SliceView) -> str:
    if not view.findings:
        return element("p", "Nothing was found.")
    lines = [
        element(
            "tr",
            *(element("td", escape(cell)) for cell in finding.cells),
            tabindex=0,
            data_finding=number,
        )
        for number, finding in enumerate(view.findings)
    ]
    head = element("thead", row(view.columns, "th"))
    return element("div", element("table", head, element("tbody", *lines)), class_="scroll")
