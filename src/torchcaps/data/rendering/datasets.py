"""Datasets that are rendered when they are read: solids and meshes, in grids of rotations or random ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from torchcaps.core import UserError

from ..api import DATASETS, DatasetInfo, Frame, RemoteFile, Split
from ..examples import PosedImages
from .mesh import MeshSet, NamedMesh, load_meshes
from .poses import Poses, grid_poses, held_out_instances, posed_images, thesis_poses, uniform_poses
from .solids import cube, cube_tetrahedron, tetrahedron
from .view import View

SIDE = 28
TINY_CLASSES = ("animal", "bike", "car", "chair", "person", "sofa")
TINY_FILE = "tiny_meshes/meshes.npz"


def _tiny_meshes(data_dir: Path) -> MeshSet:
    meshes = load_meshes(data_dir / TINY_FILE)
    if meshes.classes != TINY_CLASSES:
        raise UserError(f"{data_dir / TINY_FILE} has the classes {', '.join(meshes.classes)}; make it again")
    return meshes


Objects = Callable[[Path, Split], MeshSet]
Drawn = Callable[[int, Split], Poses]


def _uniform(num_train: int, num_test: int) -> Drawn:
    return lambda objects, split: uniform_poses(objects, num_train if split == "train" else num_test, split)


class _Pixels(NamedTuple):
    """Mean and deviation of each channel."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """One dataset: objects, rotations, how many images, and the statistics of their pixels."""

    title: str
    objects: Objects
    poses: Drawn
    counts: tuple[int, int]
    pixels: _Pixels
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
            mean=plan.pixels.mean,
            std=plan.pixels.std,
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
_MANY, _FEW = 1 << 17, 1 << 13
_on_solids = partial(
    _Plan,
    objects=lambda data_dir, split: cube_tetrahedron(),
    pixels=_Pixels((0.087, 0.086, 0.077), (0.153, 0.138, 0.134)),
)
_on_plain_solids = partial(
    _Plan,
    objects=lambda data_dir, split: cube_tetrahedron(borders=False),
    pixels=_Pixels((0.143, 0.143, 0.143), (0.203, 0.203, 0.203)),
)
_on_meshes = partial(
    _Plan,
    objects=lambda data_dir, split: _tiny_meshes(data_dir),
    pixels=_Pixels((0.1, 0.1, 0.1), (0.21, 0.21, 0.21)),
    classes=TINY_CLASSES,
    files=(RemoteFile(path=TINY_FILE),),
)

for _name, _plan in {
    "cube_tetrahedron": _on_solids(
        title="cube and tetrahedron with borders, random rotations",
        poses=_uniform(_MANY, _FEW),
        counts=(_MANY, _FEW),
    ),
    "cube_tetrahedron_plain": _on_plain_solids(
        title="grey cube and tetrahedron, random rotations",
        poses=_uniform(_MANY, _FEW),
        counts=(_MANY, _FEW),
    ),
    "cube_tetrahedron_grid": _on_solids(
        title="cube and tetrahedron with borders, distinct rotations in steps of 20 degrees",
        poses=grid_poses,
        counts=(2 * 2333, 2 * 583),
    ),
    "cube_tetrahedron_thesis": _on_solids(
        title="cube and tetrahedron with borders, grid and random split of the thesis",
        poses=thesis_poses,
        counts=(10974, 2744),
    ),
    "cube_tetrahedron_plain_thesis": _on_plain_solids(
        title="grey cube and tetrahedron, grid and random split of the thesis",
        poses=thesis_poses,
        counts=(10974, 2744),
    ),
    "tiny_meshes": _on_meshes(
        title="meshes of six classes, random rotations",
        poses=_uniform(2 * _MANY, _FEW),
        counts=(2 * _MANY, _FEW),
    ),
    "tiny_meshes_instances": _on_meshes(
        title="meshes of six classes, random rotations, tested on objects never seen",
        objects=lambda data_dir, split: held_out_instances(_tiny_meshes(data_dir), split),
        poses=_uniform(2 * _MANY, _FEW),
        counts=(2 * _MANY, _FEW),
    ),
    "tiny_meshes_thesis": _on_meshes(
        title="meshes of six classes, grid and random split of the thesis",
        poses=thesis_poses,
        counts=(268873, 67218),
    ),
}.items():
    _register(_name, _plan)
    _register(f"synthetic_{_name}", _twin(_plan))
