"""Datasets that are rendered when they are read: solids and meshes, in grids of rotations or random ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import UserError
from torchcaps.core.rotation import euler_grid, quaternions_of_euler, random_rotations
from torchcaps.core.seeding import generator

from ..api import DATASETS, DatasetInfo, Frame, RemoteFile, Split
from ..examples import PosedImages
from .mesh import MeshSet, NamedMesh, load_meshes
from .rendered import RenderedImages
from .solids import cube, cube_tetrahedron, tetrahedron
from .view import View

SIDE = 28
TEST_SHARE = 0.2
TINY_CLASSES = ("animal", "bike", "car", "chair", "person", "sofa")
TINY_FILE = "tiny_meshes/meshes.npz"


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


def held_out_instances(meshes: MeshSet, split: Split) -> MeshSet:
    """A fifth of each class for testing, at least one object, chosen by their names; or the others."""
    chosen = []
    for label in range(len(meshes.classes)):
        mine = sorted(
            (each for each in meshes.objects if each.label == label),
            key=lambda each: hashlib.blake2b(each.name.encode(), digest_size=8).digest(),
        )
        if len(mine) < 2:
            raise UserError(f"class {meshes.classes[label]} needs two objects or more to hold one out")
        count = max(1, round(TEST_SHARE * len(mine)))
        chosen += mine[:count] if split == "test" else mine[count:]
    return MeshSet(meshes.classes, tuple(chosen))


def posed_images(meshes: MeshSet, poses: Poses, view: View) -> PosedImages:
    """Examples that are rendered when they are put on a device."""
    labels = torch.tensor([each.label for each in meshes.objects])
    images = RenderedImages(tuple(each.mesh for each in meshes.objects), poses.numbers, poses.rotations, view)
    return PosedImages(images, labels[poses.numbers], poses.rotations, meshes.classes)


def _tiny_meshes(data_dir: Path) -> MeshSet:
    meshes = load_meshes(data_dir / TINY_FILE)
    if meshes.classes != TINY_CLASSES:
        raise UserError(f"{data_dir / TINY_FILE} has the classes {', '.join(meshes.classes)}; make it again")
    return meshes


Objects = Callable[[Path, Split], MeshSet]
Drawn = Callable[[int, Split], Poses]


def _uniform(num_train: int, num_test: int) -> Drawn:
    return lambda objects, split: uniform_poses(objects, num_train if split == "train" else num_test, split)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """One dataset: objects, rotations, how many images, and the statistics of their pixels."""

    title: str
    objects: Objects
    poses: Drawn
    counts: tuple[int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    classes: tuple[str, ...] = ("cube", "tetrahedron")
    files: tuple[RemoteFile, ...] = ()


def _register(name: str, plan: _Plan) -> None:
    def read(data_dir: Path, split: Split, frame: Frame = Frame(SIDE, SIDE)) -> PosedImages:  # noqa: B008
        meshes = plan.objects(data_dir, split)
        return posed_images(
            meshes, plan.poses(len(meshes.objects), split), View(height=frame.height, width=frame.width)
        )

    DATASETS.register(name)(
        DatasetInfo(
            name=name,
            title=plan.title,
            channels=3,
            height=SIDE,
            width=SIDE,
            classes=plan.classes,
            mean=plan.mean,
            std=plan.std,
            num_train=plan.counts[0],
            num_test=plan.counts[1],
            licence="rendered by the library",
            reader=read,
            framed_reader=read,
            task="pose",
            files=plan.files,
            folders=("tiny_meshes",) if plan.files else (),
        )
    )


def _with_borders(data_dir: Path, split: Split) -> MeshSet:
    del data_dir, split
    return cube_tetrahedron()


def _without_borders(data_dir: Path, split: Split) -> MeshSet:
    del data_dir, split
    return cube_tetrahedron(borders=False)


def _stand_ins(data_dir: Path, split: Split) -> MeshSet:
    """Two stretched solids for each class of the meshes."""
    del data_dir, split
    solids = (cube(borders=False), tetrahedron(borders=False))
    objects = []
    for label, name in enumerate(TINY_CLASSES):
        for number, solid in enumerate(solids):
            shape = torch.tensor([1.0, 0.4 + 0.1 * label, 1.0 - 0.12 * label])
            mesh = solid._replace(vertices=solid.vertices * shape)
            objects.append(NamedMesh(f"{name}/{number}", label, mesh.normalised()))
    return MeshSet(TINY_CLASSES, tuple(objects))


def _twin(plan: _Plan) -> _Plan:
    """A few images in random rotations that need no file."""
    return replace(
        plan,
        title=f"a few images like: {plan.title}",
        objects=_stand_ins if plan.files else plan.objects,
        poses=_uniform(*_TWIN_COUNTS),
        counts=_TWIN_COUNTS,
        files=(),
    )


_TWIN_COUNTS = (512, 64)
_SOLID = {"mean": (0.087, 0.086, 0.077), "std": (0.153, 0.138, 0.134)}
_GREY = {"mean": (0.143, 0.143, 0.143), "std": (0.203, 0.203, 0.203)}
_TINY = {
    "mean": (0.1, 0.1, 0.1),
    "std": (0.21, 0.21, 0.21),
    "classes": TINY_CLASSES,
    "files": (RemoteFile(path="meshes.npz"),),
}
_MANY, _FEW = 1 << 17, 1 << 13

for _name, _plan in {
    "cube_tetrahedron": _Plan(
        title="cube and tetrahedron with borders, random rotations",
        objects=_with_borders,
        poses=_uniform(_MANY, _FEW),
        counts=(_MANY, _FEW),
        **_SOLID,
    ),
    "cube_tetrahedron_plain": _Plan(
        title="grey cube and tetrahedron, random rotations",
        objects=_without_borders,
        poses=_uniform(_MANY, _FEW),
        counts=(_MANY, _FEW),
        **_GREY,
    ),
    "cube_tetrahedron_grid": _Plan(
        title="cube and tetrahedron with borders, distinct rotations in steps of 20 degrees",
        objects=_with_borders,
        poses=grid_poses,
        counts=(2 * 2333, 2 * 583),
        **_SOLID,
    ),
    "cube_tetrahedron_thesis": _Plan(
        title="cube and tetrahedron with borders, grid and random split of the thesis",
        objects=_with_borders,
        poses=thesis_poses,
        counts=(10974, 2744),
        **_SOLID,
    ),
    "cube_tetrahedron_plain_thesis": _Plan(
        title="grey cube and tetrahedron, grid and random split of the thesis",
        objects=_without_borders,
        poses=thesis_poses,
        counts=(10974, 2744),
        **_GREY,
    ),
    "tiny_meshes": _Plan(
        title="meshes of six classes, random rotations",
        objects=lambda data_dir, split: _tiny_meshes(data_dir),
        poses=_uniform(2 * _MANY, _FEW),
        counts=(2 * _MANY, _FEW),
        **_TINY,
    ),
    "tiny_meshes_instances": _Plan(
        title="meshes of six classes, random rotations, tested on objects never seen",
        objects=lambda data_dir, split: held_out_instances(_tiny_meshes(data_dir), split),
        poses=_uniform(2 * _MANY, _FEW),
        counts=(2 * _MANY, _FEW),
        **_TINY,
    ),
    "tiny_meshes_thesis": _Plan(
        title="meshes of six classes, grid and random split of the thesis",
        objects=lambda data_dir, split: _tiny_meshes(data_dir),
        poses=thesis_poses,
        counts=(296309, 74077),
        **_TINY,
    ),
}.items():
    _register(_name, _plan)
    _register(f"synthetic_{_name}", _twin(_plan))
