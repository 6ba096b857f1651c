"""From a scene to a folder of images with labels and masks; an interrupted rendering goes on.

OUT/poses.csv            image, class, object, split, w, x, y, z
OUT/images/CLASS/OBJECT/NUMBER.png, OUT/masks/... the same
OUT/scene.json           the resolved scene, view, camera matrix, classes, quaternion order and engine
OUT/meshes.npz           the objects in their default poses
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import UserError, as_plain, distinct_numbers, generator
from torchcaps.data.rendering import Mesh, MeshSet, Rendered, View, held_out_instances, rasterise, save_meshes
from torchcaps.storage import write_json, write_png, write_text

from .meshes import Tell
from .resumed import engine_of, keep_engine, require_same_meshes, require_same_poses, require_same_scene
from .scene import Scene, objects_of, rotations_of

EngineName = Literal["auto", "torch", "opengl", "blender"]
_COLUMNS = ("image", "class", "object", "split", "w", "x", "y", "z")


@runtime_checkable
class Engine(Protocol):
    """Renders one object in many rotations; `at_once` is the most that one call is given."""

    kind: str
    at_once: int

    def __call__(self, mesh: Mesh, rotations: Tensor, view: View) -> Rendered:
        """As `rasterise`."""
        ...


class TorchEngine:
    """Renders in PyTorch on a device."""

    kind = "torch"
    at_once = 256

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, mesh: Mesh, rotations: Tensor, view: View) -> Rendered:
        """As `rasterise`."""
        return rasterise(mesh, rotations.to(self.device), view)


class Pose(NamedTuple):
    """One image of the plan."""

    image: str  # path below the folder
    number: int  # of the object
    split: str
    rotation: tuple[float, ...]

    @property
    def mask(self) -> str:
        """Path of the mask."""
        return self.image.replace("images/", "masks/", 1)


def choose_engine(name: EngineName, device: str = "cpu", blender: Path | None = None) -> Engine:
    """The engine called `name`; "auto" is PyTorch on a GPU, and elsewhere OpenGL where it starts."""
    if name == "blender":
        from .blender import BlenderEngine

        return BlenderEngine(blender)
    if name == "opengl" or (name == "auto" and device == "cpu"):
        from .opengl import opengl_renderer

        try:
            return opengl_renderer()
        except (UserError, ModuleNotFoundError):
            if name == "opengl":
                raise
    return TorchEngine(device)


def render_scene(
    scene: Scene,
    out: Path,
    engine: Engine,
    *,
    report: Tell = lambda words: None,
    on_images: Callable[[int, int], None] = lambda done, planned: None,
) -> int:
    """Write the images of a scene that are not in `out` yet, and return how many were rendered.

    Args:
        scene: What to render.
        out: Folder; one with images of another scene is an error.
        engine: What renders.
        report: Told of mesh files that are left out.
        on_images: Told how many of how many images are there.
    """
    meshes = prepare_meshes(scene, out, report)
    poses = plan_poses(scene, meshes)
    _write_plan(out, meshes, poses)
    missing = {pose for pose in poses if not all((out / file).is_file() for file in (pose.image, pose.mask))}
    done = len(poses) - len(missing)
    on_images(done, len(poses))
    if missing:
        keep_engine(out, engine.kind, is_begun=done > 0)
    with ThreadPoolExecutor() as threads:
        for part in _chunks(poses, engine.at_once):
            if missing.isdisjoint(part):
                continue
            # also images that are there: at another place of its large picture, OpenGL rounds differently
            rotations = torch.tensor([pose.rotation for pose in part])
            found = engine(meshes.objects[part[0].number].mesh, rotations, scene.view)
            files = [file for pose, *file in _pictures(out, part, found) if pose in missing]
            list(threads.map(lambda file: write_png(*file), files))
            done += len(missing.intersection(part))
            on_images(done, len(poses))
    return len(missing)


def prepare_meshes(scene: Scene, out: Path, report: Tell) -> MeshSet:
    """The objects of a scene, written with the scene itself; what is there must be of the same scene."""
    plain = as_plain(scene)
    require_same_scene(out, plain)
    rotations_of(scene)  # raises where they cannot be made: nothing is written before
    meshes = objects_of(scene, report)
    require_same_meshes(out, meshes)
    save_meshes(out / "meshes.npz", meshes)
    description = {
        "format": 1,
        "quaternion_order": "wxyz",
        "classes": list(meshes.classes),
        "camera_matrix": scene.view.matrix().tolist(),
        "view": as_plain(scene.view),
        "scene": plain,
        **engine_of(out),
    }
    write_json(out / "scene.json", description)
    return meshes


def plan_poses(scene: Scene, meshes: MeshSet) -> list[Pose]:
    """One image for each object and rotation, in a fixed order."""
    rotations = rotations_of(scene)
    is_test = _tested(scene, meshes, rotations)
    digits = len(str(len(rotations) - 1))
    return [
        Pose(
            f"images/{_folder_of(meshes, number)}/{place:0{digits}}.png",
            number,
            "test" if bool(is_test[number, place]) else "train",
            tuple(rotation),
        )
        for number in range(len(meshes.objects))
        for place, rotation in enumerate(rotations.tolist())
    ]


def _folder_of(meshes: MeshSet, number: int) -> str:
    each = meshes.objects[number]
    return f"{meshes.classes[each.label]}/{each.name.rpartition('/')[2]}"


def _tested(scene: Scene, meshes: MeshSet, rotations: Tensor) -> Tensor:
    """Which images test, by object and rotation."""
    settings, size = scene.split, (len(meshes.objects), len(rotations))
    if settings.by == "object":
        held = {each.name for each in held_out_instances(meshes, "test", settings.test).objects}
        return torch.tensor([each.name in held for each in meshes.objects])[:, None].expand(size)
    if settings.by == "rotation":  # a grid repeats rotations: all images of one are on the same side
        numbers = distinct_numbers(rotations)
        return _drawn(int(numbers.max()) + 1, settings.test)[numbers].expand(size)
    return _drawn(size[0] * size[1], settings.test).view(size)


def _drawn(count: int, share: float) -> Tensor:
    """Which of `count` things test: a share of them, drawn at random."""
    return torch.randperm(count, generator=generator(0, "scene split")) < round(share * count)


def _write_plan(out: Path, meshes: MeshSet, poses: Sequence[Pose]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for pose in poses:
        each = meshes.objects[pose.number]
        numbers = (f"{value:.9g}" for value in pose.rotation)
        writer.writerow((pose.image, meshes.classes[each.label], each.name, pose.split, *numbers))
    require_same_poses(out, text.getvalue())
    write_text(out / "poses.csv", text.getvalue())


def _chunks(poses: Sequence[Pose], most: int) -> Iterator[Sequence[Pose]]:
    """Some images of one object at a time."""
    for _, group in groupby(poses, key=lambda pose: pose.number):
        mine = list(group)
        for start in range(0, len(mine), most):
            yield mine[start : start + most]


def _pictures(out: Path, part: Sequence[Pose], found: Rendered) -> Iterator[tuple[Pose, Path, Image.Image]]:
    """The files of images and masks with what they show."""
    images, masks = (each.permute(0, 2, 3, 1).cpu().contiguous().numpy() for each in found)
    for pose, image, mask in zip(part, images, masks[..., 0], strict=True):
        yield pose, out / pose.image, Image.fromarray(image)
        yield pose, out / pose.mask, Image.fromarray(mask)
