"""Where everything in an image lies: the random numbers of a scene, turned into poses."""

from __future__ import annotations

from math import pi, prod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from torchcaps.core import generator

from .design import Design
from .grammar import class_orders, inner_orders, places, thing_radius

BLOCK = 1024  # images whose numbers are drawn together
KNOTS = (4, 8)  # of the background's clouds, along each side
_RADIUS = 0.75  # of the whole, over half an image, before it is scaled
_LOOSE_PER_PART = 2  # distractors
_TURN = pi / 6  # of a child, to each side at full jitter
_STRETCH = 0.15
_LOOKS = 4  # shade; angle, phase and width of stripes

Poses = Float[Tensor, "batch _ 2 3"]


class Scene(NamedTuple):
    """What is to be drawn. A pose maps the unit disc of a thing to pixels, (x, y) from the centre."""

    labels: Int64[Tensor, " batch"]
    poses: Poses  # nodes of the tree, in its order
    loose: Poses  # distractors
    present: Bool[Tensor, "batch loose"]
    looks: Float[Tensor, "batch shapes 4"]  # of parts, then distractors, in [0, 1)
    clouds: Float[Tensor, "batch knots"]

    def first(self, count: int, device: torch.device | str) -> Scene:
        """The scene of at most `count` images, on another device."""
        return Scene(*(part[:count].to(device) for part in self))


def num_parts(design: Design) -> int:
    """Parts of the whole."""
    return prod(design.branches)


def num_loose(design: Design) -> int:
    """Distractors of an image, of which each is present or not; each kind of part has as many."""
    return _LOOSE_PER_PART * num_parts(design)


def draw_scene(design: Design, seed: int, block: int) -> Scene:
    """The scene of images `block * BLOCK` and following: on the CPU, so that every device sees the same."""
    rng = generator(seed, "partwhole", block)
    inner = sum(prod(design.branches[level:]) for level in range(len(design.branches)))
    parts, loose = num_parts(design), num_loose(design)
    sizes = [6, 4 * inner, 5 * loose, _LOOKS * (parts + loose), sum(knots**2 for knots in KNOTS)]
    draws = torch.rand(BLOCK, sum(sizes), generator=rng)
    whole, moves, spread, looks, clouds = torch.split(draws, sizes, dim=1)
    labels = (block * BLOCK + torch.arange(BLOCK)) % design.classes
    poses = _poses(design, labels, whole, moves.view(BLOCK, inner, 4))
    lies, present = _spread(design, spread.view(BLOCK, loose, 5))
    pixels = design.size / 2
    return Scene(labels, poses * pixels, lies * pixels, present, looks.view(BLOCK, -1, _LOOKS), clouds)


def _poses(design: Design, labels: Tensor, whole: Tensor, moves: Tensor) -> Poses:
    """All nodes, from the whole down to its parts; half an image is 1."""
    levels = [_whole_pose(design, whole)]
    taken = moves.shape[1]
    for level in reversed(range(len(design.branches))):
        children = design.branches[level]
        above = levels[-1]
        things = above.shape[1]
        if level + 1 == len(design.branches):
            order = class_orders(design)[labels].view(-1, 1, children)
        else:
            kinds = torch.arange(things) % design.branches[level + 1]
            order = inner_orders(design, level + 1)[kinds].expand(len(labels), -1, -1)
        own = moves[:, taken - things * children : taken]
        taken -= things * children
        levels.append(_children(design, above, order, own))
    return torch.cat(levels[::-1], dim=1)


def _whole_pose(design: Design, draws: Tensor) -> Poses:
    """A random affine map that keeps the whole in the frame."""
    signed = 2 * draws - 1
    angle = signed[:, 0] * (design.rotation * pi / 180)
    shear = design.shear * signed[:, 1]
    scale = _RADIUS * (1 + design.scale * signed[:, 2:4])
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([cos, -sin, sin, cos], dim=1).view(-1, 2, 2)
    slant = torch.stack([torch.ones_like(shear), shear, torch.zeros_like(shear), torch.ones_like(shear)], 1)
    matrix = turn @ slant.view(-1, 2, 2) * scale[:, None, :]
    # an ellipse reaches as far along an axis as that row of its matrix is long
    reach = torch.linalg.vector_norm(matrix, dim=2)
    shrunk = matrix * (0.98 / reach.amax(1)).clamp(max=1)[:, None, None]
    room = (1 - torch.linalg.vector_norm(shrunk, dim=2)).clamp(min=0)
    return torch.cat([shrunk, (signed[:, 4:6] * room).unsqueeze(2)], dim=2).unsqueeze(1)


def _children(design: Design, above: Poses, order: Tensor, draws: Tensor) -> Poses:
    """Children at their places in the frames of their parents, each a little moved, turned and scaled."""
    children = order.shape[2]
    radius = thing_radius(children)
    signed = (2 * draws - 1) * design.jitter
    free = 0.1 * radius / 0.9  # what a place leaves around its thing
    at = places(children)[order].flatten(1, 2) + free * signed[:, :, :2]
    own = _turned(_TURN * signed[:, :, 2], radius * (1 - _STRETCH * signed[:, :, 3].abs()))
    parent = above.repeat_interleave(children, dim=1)
    matrix = parent[..., :2] @ own
    shift = (parent[..., :2] @ at.unsqueeze(-1)) + parent[..., 2:]
    return torch.cat([matrix, shift], dim=-1)


def _spread(design: Design, draws: Tensor) -> tuple[Poses, Tensor]:
    """Loose parts anywhere, as large as those of the whole, turned as much."""
    radius = _RADIUS
    for children in design.branches:
        radius *= thing_radius(children)
    stretch = 1 + design.scale * (2 * draws[..., 3] - 1)
    matrix = _turned((2 * draws[..., 2] - 1) * (design.rotation * pi / 180), radius * stretch)
    at = (2 * draws[..., :2] - 1) * (1 - radius)
    return torch.cat([matrix, at.unsqueeze(-1)], dim=-1), draws[..., 4] < design.clutter


def _turned(angle: Tensor, scale: Tensor) -> Tensor:
    cos, sin = scale * angle.cos(), scale * angle.sin()
    return torch.stack([cos, -sin, sin, cos], dim=-1).view(*angle.shape, 2, 2)
