"""Whether the images that a folder holds are of the scene that is rendered there again.

A scene names its rotations and meshes by paths. Where those files changed, images that are kept would get the
labels of others.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import torch

from torchcaps.core import Plain, UserError
from torchcaps.data.rendering import MeshSet, load_meshes
from torchcaps.storage import read_mapping, read_text, write_json

_NEAR = 1e-5  # processors round differently


def require_same_scene(out: Path, scene: Plain) -> None:
    """Raise where a folder holds images of another scene than this one, as plain values."""
    path = out / "scene.json"
    if path.is_file() and read_mapping(path).get("scene") != scene:
        raise _another(out, "another scene")


def engine_of(out: Path) -> dict[str, str]:
    """The engine that rendered the images of a folder, where it is written down."""
    path = out / "scene.json"
    name = read_mapping(path).get("engine") if path.is_file() else None
    return {"engine": name} if isinstance(name, str) else {}


def keep_engine(out: Path, name: str, *, is_begun: bool) -> None:
    """Write down what renders; where it goes on after another engine, raise."""
    known = engine_of(out).get("engine", name)
    if is_begun and known != name:
        raise UserError(
            f"{out} holds images that the engine {known} rendered; go on with --engine {known}, choose "
            "another --out, or delete it"
        )
    write_json(out / "scene.json", {**read_mapping(out / "scene.json"), "engine": name})


def require_same_meshes(out: Path, meshes: MeshSet) -> None:
    """Raise where a folder has images, and they are of other objects."""
    if not (out / "poses.csv").is_file() or not (out / "meshes.npz").is_file():
        return
    known = load_meshes(out / "meshes.npz")
    if known.classes != meshes.classes or not _alike(known, meshes):
        raise _another(out, "other meshes")


def _alike(known: MeshSet, meshes: MeshSet) -> bool:
    if [each[:2] for each in known.objects] != [each[:2] for each in meshes.objects]:
        return False
    return all(
        torch.equal(a.mesh.faces, b.mesh.faces)
        and a.mesh.vertices.shape == b.mesh.vertices.shape
        and torch.allclose(a.mesh.vertices, b.mesh.vertices.float(), atol=_NEAR)
        and torch.allclose(a.mesh.colours, b.mesh.colours, atol=0.01)  # an archive has 256 of each
        for a, b in zip(known.objects, meshes.objects, strict=True)
    )


def require_same_poses(out: Path, planned: str) -> None:
    """Raise where a folder has images, and they show other rotations than the planned lines say."""
    path = out / "poses.csv"
    if not path.is_file():
        return
    (names, rotations), (old_names, old_rotations) = (_labels(text) for text in (planned, read_text(path)))
    if names != old_names or not torch.allclose(rotations, old_rotations, atol=_NEAR):
        raise _another(out, "other rotations")


def _labels(text: str) -> tuple[Sequence[tuple[str | None, ...]], torch.Tensor]:
    """Images with their objects, and their rotations; which of them test may have changed."""
    lines = list(csv.DictReader(StringIO(text, newline="")))
    names = [tuple(line.get(key) for key in ("image", "class", "object")) for line in lines]
    try:
        return names, torch.tensor([[float(line[key]) for key in "wxyz"] for line in lines])
    except (KeyError, TypeError, ValueError):  # someone wrote it anew
        return [], torch.empty(0, 4)


def _another(out: Path, what: str) -> UserError:
    return UserError(f"{out} holds images of {what}; choose another --out or delete it")
