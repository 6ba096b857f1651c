"""A page as a photograph: light, lens, noise of the sensor and a JPEG file."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from math import cos, pi, sin

import numpy as np
import torch
from PIL import Image, ImageFilter

from torchcaps.core import generator

from .page import Levels, draw_page
from .pen import Written
from .scene import Chance, Scene

_EDGES = {"shadow": 30.0, "sharp shadow": 200.0}  # how steeply the light falls there
_COARSE = 256  # longest side in which light is drawn
_TILE = 1024  # side of the noise, which repeats beyond


def take_photograph(written: Written | None, scene: Scene, chance: Chance) -> Image.Image:
    """The photograph of a digit, or of a sheet without one, in grey."""
    page = draw_page(written, scene, chance) * (scene.exposure * _light(scene, chance))
    seen = _as_picture(page).filter(ImageFilter.GaussianBlur(scene.blur))
    noisy = _as_picture(np.asarray(seen, dtype=np.float32) + scene.noise * _noise(seen.size, chance))
    if scene.shrink > 1:
        noisy = noisy.reduce(scene.shrink)
    file = BytesIO()
    noisy.save(file, "JPEG", quality=scene.quality)
    with Image.open(file) as stored:
        stored.load()
    return stored


def _as_picture(levels: Levels) -> Image.Image:
    return Image.fromarray(np.clip(levels, 0, 255).round().astype(np.uint8))


def _light(scene: Scene, chance: Chance) -> Levels:
    """The share of the light that reaches each pixel."""
    longest = max(scene.size)
    width, height = (max(2, round(_COARSE * side / longest)) for side in scene.size)
    right, below = np.linspace(-1, 1, width), np.linspace(-1, 1, height)[:, None]
    angle = pi * chance.light
    along = right * cos(angle) + below * sin(angle)
    light = 1 - 0.04 * (along + 1) - 0.04 * (right**2 + below**2)  # one side is brighter, corners are darker
    if scene.light == "window":
        light = light * (0.7 - 0.3 * along / 1.2)
    elif scene.light == "lamp":
        away = (right - 0.4 * chance.edge) ** 2 + (below - 0.4 * chance.light) ** 2
        light = light / (1 + 0.6 * away)
    elif scene.light in _EDGES:
        light = light * (1 - 0.5 / (1 + np.exp(-_EDGES[scene.light] * (along - 0.35 * chance.edge))))
    coarse = Image.fromarray(light.astype(np.float32))
    return np.asarray(coarse.resize(scene.size, Image.Resampling.BILINEAR))


def _noise(size: tuple[int, int], chance: Chance) -> Levels:
    """Normal noise of a sensor, of which each photograph has another part."""
    start = [int((1 + value) * _TILE / 2) % _TILE for value in (chance.across, chance.down)]
    tile = np.roll(_tile(), start, (0, 1))
    return np.tile(tile, (-(-size[1] // _TILE), -(-size[0] // _TILE)))[: size[1], : size[0]]


@cache
def _tile() -> Levels:
    return torch.randn(_TILE, _TILE, generator=generator(0, "photographs suite", "noise")).numpy()
