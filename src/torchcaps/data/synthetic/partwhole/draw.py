"""PartWhole: images of objects whose parts are known, drawn from a seed on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from torchcaps.core import UserError

from .design import Design
from .grammar import Tree, build_tree
from .render import paint
from .scene import BLOCK, Scene, draw_scene, num_parts

_CACHED = 1 << 18  # pixels


@dataclass(frozen=True, eq=False)
class PartWhole:
    """Images with all that is true of them.

    Attributes:
        images: Grey.
        labels: The class: which child of the whole stands where.
        owners: What is seen at each pixel: 0 the background, from 1 on the parts in the order of the tree,
            then the distractors.
        poses: Of the tree's nodes, in its order. A pose maps the unit disc of a node to pixels, (x, y) from
            the centre of the image, x to the right and y down.
        loose_poses: Of the distractors.
        present: Which of these are there.
        tree: Alike in all images.
    """

    images: UInt8[Tensor, "count 1 height width"]
    labels: Int64[Tensor, " count"]
    owners: UInt8[Tensor, "count height width"]
    poses: Float[Tensor, "count nodes 2 3"]
    loose_poses: Float[Tensor, "count loose 2 3"]
    present: Bool[Tensor, "count loose"]
    tree: Tree

    def __len__(self) -> int:
        return len(self.images)

    @property
    def part_masks(self) -> Bool[Tensor, "count parts height width"]:
        """Where each part is seen."""
        numbers = torch.arange(1, 1 + self.tree.num_parts, device=self.owners.device)
        return self.owners.unsqueeze(1) == numbers.view(1, -1, 1, 1)

    @property
    def is_object(self) -> Bool[Tensor, "count height width"]:
        """Where some part is seen."""
        return (self.owners > 0) & (self.owners <= self.tree.num_parts)

    @property
    def is_clutter(self) -> Bool[Tensor, "count height width"]:
        """Where a distractor is seen."""
        return self.owners > self.tree.num_parts


def draw_partwhole(
    count: int, design: Design | None = None, *, seed: int = 0, device: torch.device | str = "cpu"
) -> PartWhole:
    """The first `count` images of a seed, classes taking turns.

    Random numbers are drawn on the CPU: every device draws the same scenes, up to the rounding of a grey
    value. Asking for more images leaves the first ones as they were.
    """
    design = design or Design()
    if count < 1:
        raise UserError(f"partwhole draws at least 1 image, got {count}")
    if num_parts(design) * 3 > 255:
        raise UserError(f"partwhole.branches make {num_parts(design)} parts; at most 85 can be numbered")
    drawn = []
    for block in range(-(-count // BLOCK)):
        scene = draw_scene(design, seed, block).first(count - block * BLOCK, device)
        drawn.append((*_painted(scene, design), scene))
    images, owners, scenes = zip(*drawn, strict=True)
    return PartWhole(
        images=torch.cat(images),
        labels=torch.cat([scene.labels for scene in scenes]),
        owners=torch.cat(owners),
        poses=torch.cat([scene.poses for scene in scenes]),
        loose_poses=torch.cat([scene.loose for scene in scenes]),
        present=torch.cat([scene.present for scene in scenes]),
        tree=build_tree(design.branches),
    )


def _painted(scene: Scene, design: Design) -> tuple[Tensor, Tensor]:
    """Images and owners; a processor paints pieces that fit its cache, a GPU all at once."""
    if scene.labels.device.type != "cpu":
        return paint(scene, design)
    at_once = max(1, _CACHED // design.size**2)
    pieces = [torch.split(part, at_once) for part in scene]
    images, owners = zip(*(paint(Scene(*piece), design) for piece in zip(*pieces, strict=True)), strict=True)
    return torch.cat(images), torch.cat(owners)
