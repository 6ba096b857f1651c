"""A sheet as the camera sees it in even light: paper, lines, stains, a digit, a table around it."""

from __future__ import annotations

from math import ceil, pi
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional

from torchcaps.core import generator

from .pen import FINE, Written
from .scene import Chance, Scene, middle_of_digit, sheet_from_photograph

Levels = NDArray[np.floating[Any]]
Map = NDArray[np.float64]  # 3x3, of places in a plane
_INNER = 20  # pixels of a test image that are the height of a digit
_BEYOND = 100.0  # pixels of a test image: no pen is as wide
_TONES = 12.0  # levels by which sheets differ
_LINE = 0.3  # width of a ruled line
_CUP, _RIM, _COFFEE = 30.0, 1.5, 0.25  # radius and width of the ring of a cup, and how much light it takes
_BLOT, _BLOTTED = 1.0, 40.0  # radius of a blot at most, and its tone
_GRAIN = 3  # pixels of the grain of pencil and chalk
_WOOD = 12.0  # levels by which a table differs from place to place


def draw_page(written: Written | None, scene: Scene, chance: Chance) -> Levels:
    """Levels 0 to 255 of all pixels, before light and camera; None is a sheet without a digit."""
    to_sheet = sheet_from_photograph(scene, chance)
    page = np.full(scene.size[::-1], scene.paper + _TONES * chance.tone, dtype=np.float32)
    if not scene.is_plain:
        across, down = _places(to_sheet, scene.size)
        page += (scene.line if scene.ink > scene.paper else -scene.line) * _ruled(across, down, scene)
        if scene.ring:
            page *= 1 - _COFFEE * _ring(across, down, chance)
        page += (_BLOTTED - page) * _blots(across, down, scene, chance)
    if written is not None:
        _write(page, written, scene, _written_from_sheet(written, scene, chance) @ to_sheet)
    return page if scene.table is None else _on_table(page, across, down, scene, table=scene.table)


def _places(to_sheet: Map, size: tuple[int, int]) -> tuple[Levels, Levels]:
    """Where on the sheet each pixel lies."""
    columns = np.arange(size[0], dtype=np.float32) + 0.5
    rows = np.arange(size[1], dtype=np.float32)[:, None] + 0.5
    across, down, depth = ((a * columns + b * rows + c).astype(np.float32) for a, b, c in to_sheet)
    return across / depth, down / depth


def _covered(inside: Levels, scene: Scene) -> Levels:
    """How much of a pixel is covered, from the millimetres by which its middle lies inside."""
    covered: Levels = np.clip(0.5 + inside * scene.seen_scale, 0, 1)
    return covered


def _ruled(across: Levels, down: Levels, scene: Scene) -> Levels:
    cover = np.zeros_like(across)
    for places, spacing in ((down, scene.rows), (across, scene.columns)):
        if spacing:
            away = np.abs((places + spacing / 2) % spacing - spacing / 2)
            cover = np.maximum(cover, _covered(_LINE / 2 - away, scene))
    return cover * min(1.0, _LINE * scene.seen_scale)  # a line may be thinner than a pixel


def _ring(across: Levels, down: Levels, chance: Chance) -> Levels:
    """Strong at one side of the cup, and nearly gone at the other."""
    right, below = across - 35 * chance.stain, down - 25 * chance.edge
    away = np.hypot(right, below) - _CUP
    strength = 0.6 + 0.4 * np.cos(np.arctan2(below, right) - pi * chance.light)
    return np.exp(-((away / _RIM) ** 2)) * strength


def _blots(across: Levels, down: Levels, scene: Scene, chance: Chance) -> Levels:
    cover = np.zeros_like(across)
    rng = generator(0, "photographs suite", "blots", round(1e6 * chance.stain))
    for right, below, radius in torch.rand(scene.blots, 3, generator=rng).tolist():
        middle = [0.9 * (place - 0.5) * side for place, side in zip((right, below), scene.sheet, strict=True)]
        away = np.hypot(across - middle[0], down - middle[1])
        cover = np.maximum(cover, _covered(_BLOT * (0.4 + 0.6 * radius) - away, scene))
    return cover


def _written_from_sheet(written: Written, scene: Scene, chance: Chance) -> Map:
    """The map from millimetres on the sheet to places of the written digit."""
    right, below = middle_of_digit(scene, chance)
    scale = FINE * _INNER / scene.digit
    height, width = written.needed.shape
    return np.array(
        [[scale, 0, width / 2 - scale * right], [0, scale, height / 2 - scale * below], [0, 0, 1]]
    )


def _write(page: Levels, written: Written, scene: Scene, to_written: Map) -> None:
    """Put ink on the page."""
    height, width = written.needed.shape
    corners = np.linalg.inv(to_written) @ [[0, width, 0, width], [0, 0, height, height], [1, 1, 1, 1]]
    columns, rows = corners[:2] / corners[2]
    left, top = max(0, int(columns.min())), max(0, int(rows.min()))
    size = min(page.shape[1], ceil(columns.max())) - left, min(page.shape[0], ceil(rows.max())) - top
    moved = to_written @ [[1, 0, left], [0, 1, top], [0, 0, 1]]
    spare = Image.fromarray((_BEYOND - written.needed).clamp(min=0).numpy())  # beyond its edges it is 0
    way = (moved / moved[2, 2]).ravel()[:8].tolist()
    seen = spare.transform(size, Image.Transform.PERSPECTIVE, way, Image.Resampling.BILINEAR)
    pixel = scene.digit / _INNER
    pen = written.width if scene.pen is None else scene.pen / pixel
    needed = _BEYOND - np.asarray(seen, dtype=np.float32)
    cover = _covered(pixel * (pen - needed) / 2, scene)
    cover *= 1 - scene.rough * _grain(size)
    part = page[top : top + size[1], left : left + size[0]]
    part += (scene.ink - part) * cover


def _grain(size: tuple[int, int]) -> Levels:
    """Random numbers from 0 to 1 in squares of some pixels."""
    rng = generator(0, "photographs suite", "grain")
    coarse = torch.rand(-(-size[1] // _GRAIN), -(-size[0] // _GRAIN), generator=rng).numpy()
    return coarse.repeat(_GRAIN, 0).repeat(_GRAIN, 1)[: size[1], : size[0]]


def _on_table(page: Levels, across: Levels, down: Levels, scene: Scene, *, table: float) -> Levels:
    """The page as a sheet that throws a little shadow on a table of wood."""
    width, height = scene.sheet
    beyond = np.maximum(np.abs(across) - width / 2, np.abs(down) - height / 2)
    fibres = torch.randn(1, 1, 60, 5, generator=generator(0, "photographs suite", "table"))
    grain = functional.interpolate(fibres, page.shape, mode="bicubic")[0, 0].numpy()
    shade = 1 - 0.35 * np.exp(-np.maximum(beyond, 0) / 2)
    return page + ((table + _WOOD * grain) * shade - page) * _covered(beyond, scene)
