"""Which objects are rendered in which rotations, and which of them test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from torchcaps.core import UserError, digest_of, euler_grid, generator, quaternions_of_euler, random_rotations

from ..api import Split
from ..examples import PosedImages
from .mesh import MeshSet
from .rendered import RenderedImages
from .view import View

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Poses:
    """Which object is in each image, and how it is turned."""

    numbers: Tensor
    rotations: Tensor


def uniform_poses(objects: int, count: int, split: Split) -> Poses:
    """Uniformly random rotations, objects taking turns; those of the test images are others."""
    rng = generator(0, "uniform poses", split)
    return Poses(torch.arange(count) % objects, random_rotations(count, rng))


def grid_poses(objects: int, split: Split) -> Poses:
    """Each distinct rotation of the thesis's grid, a fifth of them for testing, the same for all objects."""
    rotations = quaternions_of_euler(euler_grid(repeated=False).double()).float()
    return _crossed(objects, _shared(rotations, split, "rotations"))


def thesis_poses(objects: int, split: Split) -> Poses:
    """The thesis's grid with its repetitions, a fifth of the images for testing, chosen at random.

    A rotation that is tested was nearly always trained on as well: this split leaks.
    """
    whole = _crossed(objects, quaternions_of_euler(euler_grid().double()).float())
    chosen = _shared(torch.arange(len(whole.numbers)), split, "images")
    return Poses(whole.numbers[chosen], whole.rotations[chosen])


def leaked_share(train: Tensor, test: Tensor) -> float:
    """The share of test rotations that are also trained on."""
    cosines = torch.cat([(part @ train.T).abs().amax(1) for part in torch.split(test, 1024)])
    return float((cosines > 1 - 1e-5).float().mean())  # half a degree; grid rotations are 20 apart


def _shared(items: Tensor, split: Split, purpose: str) -> Tensor:
    order = torch.randperm(len(items), generator=generator(0, "held-out", purpose))
    count = round(TEST_SHARE * len(items))
    return items[(order[:count] if split == "test" else order[count:]).sort().values]


def _crossed(objects: int, rotations: Tensor) -> Poses:
    return Poses(torch.arange(objects).repeat_interleave(len(rotations)), rotations.repeat(objects, 1))


def held_out_instances(meshes: MeshSet, split: Split, share: float = TEST_SHARE) -> MeshSet:
    """A share of each class for testing, at least one object, chosen by their names; or the others."""
    chosen = []
    for label in range(len(meshes.classes)):
        own = (each for each in meshes.objects if each.label == label)
        mine = sorted(own, key=lambda each: digest_of(each.name))
        if len(mine) < 2:
            raise UserError(f"class {meshes.classes[label]} needs two objects or more to hold one out")
        count = min(max(1, round(share * len(mine))), len(mine) - 1)
        chosen += mine[:count] if split == "test" else mine[count:]
    return MeshSet(meshes.classes, tuple(chosen))


def posed_images(meshes: MeshSet, poses: Poses, view: View) -> PosedImages:
    """Examples that are rendered when they are put on a device."""
    labels = torch.tensor([each.label for each in meshes.objects])
    images = RenderedImages(tuple(each.mesh for each in meshes.objects), poses.numbers, poses.rotations, view)
    found = PosedImages(images, labels[poses.numbers], poses.rotations, meshes.classes)
    return found.drawn_by(partial(render_anew, meshes, view))


def render_anew(
    meshes: MeshSet, view: View, count: int, random: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Images, labels and rotations of objects that take turns, each in a random rotation."""
    numbers, rotations = torch.arange(count) % len(meshes.objects), random_rotations(count, random)
    images = RenderedImages(tuple(each.mesh for each in meshes.objects), numbers, rotations, view, device)
    return images[:], torch.tensor([each.label for each in meshes.objects])[numbers], rotations
