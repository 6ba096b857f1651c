"""The random changes of a training recipe, as settings and as one function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import ImageSize, UserError, sides

from .camera import motion_blur, shift_colours
from .examples import Mode
from .transforms import erase, horizontal_flip, jitter, move_by, move_in_margins, random_crop, shift, uniform
from .warp import AffineLimits, draw_affine, warp

# Every change has its own columns of random numbers, so switching one on leaves the others as they were.
_COLUMNS = {"affine": 8, "crop": 2, "flip": 1, "shift": 2, "margin": 2, "jitter": 3, "erase": 2}
_LENGTHS = ("motion_blur", "noise")
_LIMITS = tuple(field.name for field in fields(AffineLimits))
NUM_DRAWS = sum(_COLUMNS.values())


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Which random changes training images get; each is off by default.

    Attributes:
        shift: Pixels to each side; zeros enter.
        margin_shift: Any shift that keeps all pixels other than zero in the frame.
        crop: Height and width of a random window, or the side of a square.
        flip: Left to right, every second image.
        rotation: Degrees to each side.
        rotation_probability: Share of the images that are rotated.
        rotation_law: "uniform", or "normal" with a deviation of rotation / 3, clipped.
        shear: Pixels of x per pixel of y, to each side.
        scale: Each axis by 1 ± scale.
        translation: Share of the width and height, to each side.
        squish: Width by 1 - squish .. 1.
        brightness: Added, to each side.
        brightness_gain: Multiplied, 1 ± gain.
        contrast: Lowest and highest factor.
        erase: Side of a square set to zero.
        hue: Degrees by which colours turn, to each side.
        saturation: Multiplied, 1 ± saturation.
        motion_blur: Longest line in pixels along which an image is averaged.
        noise: Largest standard deviation of what is added to each pixel.
    """

    shift: int = 0
    margin_shift: bool = False
    crop: ImageSize = 0
    flip: bool = False
    rotation: float = 0.0
    rotation_probability: float = 1.0
    rotation_law: Literal["uniform", "normal"] = "uniform"
    shear: float = 0.0
    scale: float = 0.0
    translation: float = 0.0
    squish: float = 0.0
    brightness: float = 0.0
    brightness_gain: float = 0.0
    contrast: tuple[float, float] | None = None
    erase: int = 0
    hue: float = 0.0
    saturation: float = 0.0
    motion_blur: float = 0.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        _require(min(sides(self.crop)) >= 0, "crop", "must not be negative", self.crop)
        for name in ("shift", "erase", "rotation", "shear", "translation", "brightness", "hue", *_LENGTHS):
            _require(getattr(self, name) >= 0, name, "must not be negative", getattr(self, name))
        for name in ("scale", "squish"):
            _require(0 <= getattr(self, name) < 1, name, "must lie in [0, 1)", getattr(self, name))
        for name in ("rotation_probability", "brightness_gain", "saturation"):
            _require(0 <= getattr(self, name) <= 1, name, "must lie in [0, 1]", getattr(self, name))
        _require(
            self.rotation_law in ("uniform", "normal"),
            "rotation_law",
            "is uniform or normal",
            self.rotation_law,
        )
        if self.contrast is not None:
            is_range = len(self.contrast) == 2 and 0 <= self.contrast[0] <= self.contrast[1]
            _require(is_range, "contrast", "must be a lowest and a highest factor", self.contrast)

    @property
    def is_affine(self) -> bool:
        """Whether images are resampled."""
        return any((self.rotation, self.shear, self.scale, self.translation, self.squish))

    @property
    def is_geometric(self) -> bool:
        """Whether pixels move, and with them what an image shows and where."""
        return any(getattr(self, name) for name in ("is_affine", "crop", "flip", "shift", "margin_shift"))

    @property
    def is_jittered(self) -> bool:
        """Whether brightness or contrast changes."""
        return any((self.brightness, self.brightness_gain, self.contrast))

    @property
    def is_photographic(self) -> bool:
        """Whether images change as those of a moving camera do."""
        return any((self.hue, self.saturation, self.motion_blur, self.noise))

    @property
    def affine_limits(self) -> AffineLimits:
        """The part of the settings that `affine` reads."""
        return AffineLimits(**{name: getattr(self, name) for name in _LIMITS})


def draw_numbers(count: int, generator: torch.Generator) -> Float[Tensor, "{count} draws"]:
    """The random numbers that `augment` needs for `count` images, on the generator's device."""
    return torch.rand(count, NUM_DRAWS, generator=generator, device=generator.device)


def augment(
    images: Float[Tensor, "batch channels height width"],
    settings: Augment,
    randomness: torch.Generator | Float[Tensor, "batch draws"],
) -> Float[Tensor, "batch channels new_height new_width"]:
    """Images in [0, 1] changed at random, in this order: affine map, crop, flip, shift, jitter, erasing,
    colours, motion blur, noise.

    Give the numbers of `draw_numbers` instead of a generator where the call is compiled.
    """
    return augment_pairs(images, None, settings, randomness)[0]


def augment_pairs(
    images: Float[Tensor, "batch channels height width"],
    masks: Float[Tensor, "batch 1 height width"] | None,
    settings: Augment,
    randomness: torch.Generator | Float[Tensor, "batch draws"],
) -> tuple[Tensor, Tensor | None]:
    """`augment`, where the masks of the images, if there are any, move with them.

    A mask takes the nearest pixel where an image mixes neighbours; what enters at the border is background.
    """
    columns = torch.split(uniform(randomness, images, NUM_DRAWS), list(_COLUMNS.values()), dim=1)
    draws = dict(zip(_COLUMNS, columns, strict=True))
    for name in _MOVES:
        if getattr(settings, name):
            move = _MOVES[name](images, settings, draws)
            images, masks = move(images, "bilinear"), None if masks is None else move(masks, "nearest")
    for name in _CHANGES:
        if getattr(settings, name):
            images = _CHANGES[name](images, settings, draws)
    if settings.is_photographic:
        images = _photograph(images, settings, randomness)
    return images, masks


Move = Callable[[Tensor, Mode], Tensor]  # does to images, and to their masks, what was drawn
Draws = dict[str, Tensor]


def _draw_affine(images: Tensor, settings: Augment, draws: Draws) -> Move:
    inverse, offset = draw_affine(images, settings.affine_limits, draws["affine"])
    return lambda pictures, mode: warp(pictures, inverse, offset, mode)


def _draw_margin_shift(images: Tensor, settings: Augment, draws: Draws) -> Move:
    del settings
    distance = move_in_margins(images, draws["margin"])
    return lambda pictures, _: move_by(pictures, distance)


_MOVES: dict[str, Callable[[Tensor, Augment, Draws], Move]] = {  # by what switches them on, in their order
    "is_affine": _draw_affine,
    "crop": lambda _, settings, draws: lambda each, _: random_crop(each, settings.crop, draws["crop"]),
    "flip": lambda _, settings, draws: lambda each, _: horizontal_flip(each, draws["flip"]),
    "shift": lambda _, settings, draws: lambda each, _: shift(each, settings.shift, draws["shift"]),
    "margin_shift": _draw_margin_shift,
}


def _jitter(images: Tensor, settings: Augment, draws: Draws) -> Tensor:
    gain, contrast = settings.brightness_gain, settings.contrast
    return jitter(images, draws["jitter"], brightness=settings.brightness, gain=gain, contrast=contrast)


_CHANGES: dict[str, Callable[[Tensor, Augment, Draws], Tensor]] = {  # of pixels that stay where they are
    "is_jittered": _jitter,
    "erase": lambda images, settings, draws: erase(images, settings.erase, draws["erase"]),
}


def _photograph(images: Tensor, settings: Augment, randomness: torch.Generator | Tensor) -> Tensor:
    """Colours, motion blur and noise; their random numbers are drawn after all others, so those stay."""
    if isinstance(randomness, Tensor):
        raise UserError("hue, saturation, motion_blur and noise need a generator, not numbers drawn before")
    draws = torch.rand(len(images), 5, generator=randomness, device=images.device)
    if settings.hue or settings.saturation:
        hue, saturation = (2 * draws[:, column] - 1 for column in (0, 1))
        images = shift_colours(images, math.radians(settings.hue) * hue, 1 + settings.saturation * saturation)
    if settings.motion_blur:
        length = settings.motion_blur * draws[:, 2]
        images = motion_blur(images, length, math.pi * draws[:, 3], settings.motion_blur)
    if settings.noise:
        added = torch.randn(images.shape, generator=randomness, device=images.device)
        images = images + settings.noise * draws[:, 4, None, None, None] * added
    return images


def _require(is_valid: bool, name: str, rule: str, value: object) -> None:
    if not is_valid:
        raise UserError(f"augment.{name} {rule}, got {value!r}")
