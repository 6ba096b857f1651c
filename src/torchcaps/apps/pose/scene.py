"""A scene: what is rendered, how it is lit and seen, in which rotations, and which images test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import (
    MissingDataError,
    UserError,
    build_dataclass,
    euler_grid,
    generator,
    quaternions_of_euler,
    random_rotations,
    rotation_matrices,
)
from torchcaps.data.rendering import THESIS_LIGHTS, Camera, Light, MeshSet, View, cube_tetrahedron
from torchcaps.storage import expanded
from torchcaps.train.recipe import read_yaml

from .meshes import SUFFIXES, Tell, read_mesh_folder
from .rotation_file import read_rotations

Triple = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Meshes:
    """Which objects, and how they stand before they are turned.

    Attributes:
        folder: Of class folders of mesh files; without it, the cube and the tetrahedron of the thesis.
        classes: These class folders, in this order; all by default.
        most: Objects of a class; 0 means all.
        leave_out: Objects as class/name, without the ending of the file.
        rotation: Turns each mesh into its default pose: degrees about x, then y, then z.
        location: Where objects stand.
        borders: Whether the faces of built-in solids have borders in the colours of their neighbours.
    """

    folder: str = ""
    classes: tuple[str, ...] = ()
    most: int = 0
    leave_out: tuple[str, ...] = ()
    rotation: Triple = (0.0, 0.0, 0.0)
    location: Triple = (0.0, 0.0, 0.0)
    borders: bool = True


@dataclass(frozen=True, kw_only=True)
class Rotations:
    """How objects are turned.

    Attributes:
        kind: "grid" is every multiple of `step` degrees about each axis, from 0 to 360, as in the thesis;
            "distinct" is the same without repeated rotations; "random" draws `count` uniformly; "file" reads
            a CSV file with the columns w, x, y and z.
        step: Of a grid, in degrees.
        count: Of random rotations, for each object.
        seed: Of random rotations.
        file: Of "file".
    """

    kind: Literal["grid", "distinct", "random", "file"] = "grid"
    step: int = 20
    count: int = 1000
    seed: int = 0
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Splitting:
    """Which images test.

    Attributes:
        by: "rotation" holds rotations out, the same for all objects; "object" holds objects of each class
            out; "image" chooses images at random, as the thesis does, which leaks.
        test: Share of the rotations, of the objects of each class, or of the images, that test.
    """

    by: Literal["rotation", "object", "image"] = "rotation"
    test: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.test < 1:
            raise UserError(f"scene.split.test must lie between 0 and 1, got {self.test}")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """All that decides what images look like; the defaults are the thesis's.

    Attributes:
        resolution: Height and width of images in pixels.
        background: Red, green and blue, from 0 to 1.
        ambient: Light from everywhere.
        camera: Where it is seen from.
        lights: Point lights.
        meshes: Which objects.
        rotations: How they are turned.
        split: Which images test.
    """

    resolution: tuple[int, int] = (128, 128)
    background: Triple = (0.0, 0.0, 0.0)
    ambient: float = 0.05
    camera: Camera = field(default_factory=Camera)
    lights: tuple[Light, ...] = THESIS_LIGHTS
    meshes: Meshes = field(default_factory=Meshes)
    rotations: Rotations = field(default_factory=Rotations)
    split: Splitting = field(default_factory=Splitting)

    def __post_init__(self) -> None:
        _ = self.view  # raises where it shows nothing

    @property
    def view(self) -> View:
        """Camera, lights and size; objects at another place are seen from a camera that moved."""
        height, width = self.resolution
        x, y, z = self.meshes.location
        return View(
            height=height,
            width=width,
            camera=self.camera,
            lights=self.lights,
            ambient=self.ambient,
            background=self.background,
        ).moved((-x, -y, -z))


def load_scene(path: Path) -> Scene:
    """The scene in a YAML file; paths in it count from the folder of the file."""
    if path.is_dir():
        raise UserError(
            f"{path} is a folder; a scene is a YAML file, and meshes are given by --meshes {path}"
        )
    if path.suffix.lower() in SUFFIXES:
        raise UserError(
            f"{path} is a mesh; put it into a folder for its class, and give the one above that by --meshes"
        )
    values = read_yaml(path)
    scene = build_dataclass(Scene, {} if values is None else values, "scene")  # an empty file: the thesis's
    meshes, rotations = scene.meshes, scene.rotations
    if meshes.folder:
        meshes = replace(meshes, folder=str(path.parent / expanded(meshes.folder)))
    if rotations.file:
        rotations = replace(rotations, file=str(path.parent / expanded(rotations.file)))
    return replace(scene, meshes=meshes, rotations=rotations)


def with_meshes(scene: Scene, folder: Path | None) -> Scene:
    """The same scene with the meshes of another folder; None changes nothing."""
    return scene if folder is None else replace(scene, meshes=replace(scene.meshes, folder=str(folder)))


def objects_of(scene: Scene, report: Tell) -> MeshSet:
    """The objects of a scene in their default poses; `report` hears of files that are left out."""
    source = scene.meshes
    turn = rotation_matrices(quaternions_of_euler(torch.tensor(source.rotation)))
    if not source.folder:
        found = cube_tetrahedron(borders=source.borders)
    else:
        found = read_mesh_folder(
            Path(source.folder),
            source.classes or None,
            most=source.most,
            leave_out=frozenset(source.leave_out),
            report=report,
        )
    turned = [each._replace(mesh=each.mesh.turned(turn)) for each in found.objects]
    return MeshSet(found.classes, tuple(turned))


def rotations_of(scene: Scene) -> Float[Tensor, "count 4"]:
    """The rotations of a scene as unit quaternions (w, x, y, z)."""
    settings = scene.rotations
    if settings.kind == "random":
        if settings.count < 1:
            raise UserError(f"scene.rotations.count must be at least 1, got {settings.count}")
        return random_rotations(settings.count, generator(settings.seed, "scene"))
    if settings.kind == "file":
        if not settings.file:
            raise MissingDataError("scene.rotations.kind is file, and scene.rotations.file names none")
        return read_rotations(Path(settings.file))
    if not 1 <= settings.step <= 180 or 360 % settings.step:
        raise UserError(f"scene.rotations.step must divide 360 and be at most 180, got {settings.step}")
    grid = euler_grid(settings.step, repeated=settings.kind == "grid")
    return quaternions_of_euler(grid.double()).float()
