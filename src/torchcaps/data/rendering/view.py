"""What a scene is seen with: a camera, lights and a background."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError

Point = tuple[float, float, float]
_LARGEST_SIDE = 4096


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera; its defaults are those of the thesis, with Blender's usual lens.

    Attributes:
        position: Where it stands.
        target: What it looks at.
        up: What is upwards in the image.
        field_of_view: Angle across the wider side, in degrees; that of 50 mm on a 36 mm sensor.
    """

    position: Point = (4.0, 0.0, 0.0)
    target: Point = (0.0, 0.0, 0.0)
    up: Point = (0.0, 0.0, 1.0)
    field_of_view: float = 39.597755

    def __post_init__(self) -> None:
        if not 0 < self.field_of_view < 180:
            raise UserError(f"camera.field_of_view must lie between 0 and 180, got {self.field_of_view}")
        if self.axes().isnan().any() or float(torch.linalg.det(self.axes()).abs()) < 0.5:
            raise UserError("camera: position and target must differ, and up must not point along the view")

    def axes(self) -> Float[Tensor, "3 3"]:
        """Rows: right, down and forward, as seen by the camera."""
        position, target, up = (
            torch.tensor(p, dtype=torch.float64) for p in (self.position, self.target, self.up)
        )
        forward = F.normalize(target - position, dim=0)
        right = F.normalize(torch.linalg.cross(forward, up), dim=0)
        return torch.stack((right, torch.linalg.cross(forward, right), forward))


@dataclass(frozen=True, kw_only=True)
class Light:
    """A point light.

    Attributes:
        position: Where it stands.
        energy: Power in watts, as in Blender.
        colour: Red, green and blue.
    """

    position: Point
    energy: float = 1000.0
    colour: Point = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if min(self.energy, *self.colour) < 0:
            raise UserError(
                f"light: energy and colour must not be negative, got {self.energy}, {self.colour}"
            )


THESIS_LIGHTS = (Light(position=(6.0, 6.0, 4.0)), Light(position=(0.0, 0.0, 0.0)))


@dataclass(frozen=True, kw_only=True)
class View:
    """A camera, lights, background and the size of images.

    Attributes:
        height: In pixels.
        width: In pixels.
        camera: Where it is seen from.
        lights: Point lights; those of the thesis.
        ambient: Light from everywhere; Blender's usual world has 0.05.
        background: Red, green and blue from 0 to 1, as stored in the image.
    """

    height: int = 128
    width: int = 128
    camera: Camera = field(default_factory=Camera)
    lights: tuple[Light, ...] = THESIS_LIGHTS
    ambient: float = 0.05
    background: Point = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not 1 <= min(self.height, self.width) <= max(self.height, self.width) <= _LARGEST_SIDE:
            raise UserError(f"images must have 1 to {_LARGEST_SIDE:,} pixels a side")
        if min(self.background) < 0 or max(self.background) > 1:
            raise UserError(f"background must lie between 0 and 1, got {list(self.background)}")
        if self.ambient < 0:
            raise UserError(f"ambient must not be negative, got {self.ambient}")

    def enlarged(self, times: int) -> View:
        """The same view with more pixels."""
        return replace(self, height=times * self.height, width=times * self.width)

    def cropped(self, height: int, width: int) -> View:
        """The middle part of the wanted shape, at another size, as `fit_picture` cuts it out."""
        across = min(self.width, self.height * width / height)  # pixels of this view that are seen
        share = across / width * max(height, width) / max(self.height, self.width)
        slope = share * math.tan(math.radians(self.camera.field_of_view) / 2)
        camera = replace(self.camera, field_of_view=math.degrees(2 * math.atan(slope)))
        return replace(self, height=height, width=width, camera=camera)

    def moved(self, by: Point) -> View:
        """Camera and lights moved; objects seem to move the other way."""
        camera = replace(
            self.camera, position=_sum(self.camera.position, by), target=_sum(self.camera.target, by)
        )
        lights = tuple(replace(light, position=_sum(light.position, by)) for light in self.lights)
        return replace(self, camera=camera, lights=lights)

    def matrix(self) -> Float[Tensor, "3 4"]:
        """From a point (x, y, z, 1) to depth * (column, row, 1); the first pixel's middle is (0.5, 0.5)."""
        longer = max(self.height, self.width)
        focal = longer / (2 * math.tan(math.radians(self.camera.field_of_view) / 2))
        inner = torch.tensor(
            [[focal, 0, self.width / 2], [0, focal, self.height / 2], [0, 0, 1]], dtype=torch.float64
        )
        axes = self.camera.axes()
        shift = -axes @ torch.tensor(self.camera.position, dtype=torch.float64)
        return inner @ torch.cat((axes, shift[:, None]), dim=1)


def _sum(a: Point, b: Point) -> Point:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])
