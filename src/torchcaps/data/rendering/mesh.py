"""A triangle mesh as tensors, what is derived from it, and archives of many."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import Form, read_arrays, write_arrays

RADIUS = 1.3  # of objects: the whole of one is in the image, whichever way it is turned
_FORMS = {
    "vertices": Form("f", 2),
    "faces": Form("iu", 2),
    "colours": Form("u", 2),
    "vertex_ends": Form("iu", 1),
    "face_ends": Form("iu", 1),
    "is_closed": Form("b", 1),
    "labels": Form("iu", 1),
    "names": Form("U", 1),
    "classes": Form("U", 1),
}


class Mesh(NamedTuple):
    """Triangles, counter-clockwise when seen from outside, with one colour each.

    A closed mesh shows its outer sides alone. The outer sides of a convex mesh do not hide each other.
    """

    vertices: Float[Tensor, "vertices 3"]
    faces: Int64[Tensor, "faces 3"]
    colours: Float[Tensor, "faces 3"]  # share of red, green and blue light that is thrown back
    is_closed: bool = False
    is_convex: bool = False

    @property
    def corners(self) -> Float[Tensor, "faces 3 3"]:
        """The three corners of each triangle."""
        return self.vertices[self.faces]

    @property
    def centres(self) -> Float[Tensor, "faces 3"]:
        """The middle of each triangle."""
        return self.corners.mean(1)

    @property
    def normals(self) -> Float[Tensor, "faces 3"]:
        """Unit vectors outwards."""
        a, b, c = self.corners.unbind(1)
        return F.normalize(torch.linalg.cross(b - a, c - a), dim=1)

    def to(self, device: torch.device | str) -> Mesh:
        """The same mesh on another device."""
        return self._replace(
            vertices=self.vertices.to(device), faces=self.faces.to(device), colours=self.colours.to(device)
        )

    def normalised(self) -> Mesh:
        """In a ball of `RADIUS` around the middle of its bounding box, touching it."""
        low, high = self.vertices.amin(0), self.vertices.amax(0)
        centred = self.vertices - (low + high) / 2
        return self._replace(vertices=centred * (RADIUS / torch.linalg.vector_norm(centred, dim=1).max()))

    def turned(self, matrix: Float[Tensor, "3 3"]) -> Mesh:
        """Turned by a rotation matrix."""
        return self._replace(vertices=self.vertices @ matrix.to(self.vertices).T)


class NamedMesh(NamedTuple):
    """A mesh that belongs to a class."""

    name: str
    label: int
    mesh: Mesh


class MeshSet(NamedTuple):
    """Objects of some classes."""

    classes: tuple[str, ...]
    objects: tuple[NamedMesh, ...]

    def of_class(self, label: int) -> list[Mesh]:
        """The meshes of a class."""
        return [each.mesh for each in self.objects if each.label == label]

    def in_order(self, classes: tuple[str, ...]) -> MeshSet:
        """The same objects with the classes, which must be the same, in another order."""
        labels = [classes.index(name) for name in self.classes]
        return MeshSet(classes, tuple(each._replace(label=labels[each.label]) for each in self.objects))


def save_meshes(path: Path, meshes: MeshSet) -> None:
    """Write objects as one compressed archive of NumPy arrays, which `load_meshes` reads without trimesh."""
    parts = [each.mesh for each in meshes.objects]
    arrays = {
        "vertices": torch.cat([mesh.vertices for mesh in parts]).float().numpy(),
        "faces": torch.cat([mesh.faces for mesh in parts]).int().numpy(),
        "colours": torch.cat([mesh.colours for mesh in parts]).mul(255).round().byte().numpy(),
        "vertex_ends": np.cumsum([len(mesh.vertices) for mesh in parts]),
        "face_ends": np.cumsum([len(mesh.faces) for mesh in parts]),
        "is_closed": np.array([mesh.is_closed for mesh in parts]),
        "labels": np.array([each.label for each in meshes.objects]),
        "names": np.array([each.name for each in meshes.objects]),
        "classes": np.array(meshes.classes),
    }
    write_arrays(path, arrays)


def load_meshes(path: Path) -> MeshSet:
    """The objects in an archive that `save_meshes` wrote; no code in it is run."""
    if not path.is_file():
        raise MissingDataError(
            f"no meshes at {path}; make them with "
            f"torchcaps pose render SCENE --meshes-only --out {path.parent}"
        )
    arrays = read_arrays(path, _FORMS, "archive of meshes")
    try:
        return _unpacked(arrays)
    except ValueError as error:
        raise UserError(f"{path} is no archive of meshes ({error}); make it again") from error


def _unpacked(arrays: Mapping[str, np.ndarray]) -> MeshSet:
    vertices = _pieces(torch.from_numpy(arrays["vertices"]).float(), arrays["vertex_ends"])
    faces = _pieces(torch.from_numpy(arrays["faces"].astype(np.int64)), arrays["face_ends"])
    colours = _pieces(torch.from_numpy(arrays["colours"]).float() / 255, arrays["face_ends"])
    meshes = [
        Mesh(corners, triangles, shown, bool(is_closed))
        for corners, triangles, shown, is_closed in zip(
            vertices, faces, colours, arrays["is_closed"], strict=True
        )
    ]
    for mesh in meshes:
        _require_usable(mesh)
    labels = arrays["labels"]
    if not labels.size or not 0 <= labels.min() <= labels.max() < len(arrays["classes"]):
        raise ValueError("an object is of a class that is not there")
    named = zip(arrays["names"].tolist(), labels.tolist(), meshes, strict=True)
    return MeshSet(tuple(map(str, arrays["classes"])), tuple(NamedMesh(*each) for each in named))


def _require_usable(mesh: Mesh) -> None:
    if any(each.shape[1] != 3 for each in (mesh.vertices, mesh.faces, mesh.colours)):
        raise ValueError("corners, faces and colours must have three columns")
    if not len(mesh.faces) or int(mesh.faces.min()) < 0 or int(mesh.faces.max()) >= len(mesh.vertices):
        raise ValueError("a face names a corner that is not there")
    if not bool(mesh.vertices.isfinite().all()):
        raise ValueError("a corner is not finite")


def _pieces(whole: Tensor, ends: np.ndarray) -> list[Tensor]:
    """The parts of a tensor that end at `ends`, of which the last must be its own."""
    sizes = np.diff(ends.astype(np.int64), prepend=0)
    if sizes.size == 0 or sizes.min() < 0 or sizes.sum() != len(whole):
        raise ValueError("its objects do not end where its arrays do")
    return list(torch.split_with_sizes(whole, sizes.tolist()))
