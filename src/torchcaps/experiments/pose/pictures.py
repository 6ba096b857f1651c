"""The pictures of docs/pose.md: run this module with a data folder, a target, and runs of pose networks."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import generator, random_rotations
from torchcaps.data.rendering import TINY_FILE, MeshSet, View, cube_tetrahedron, load_meshes, render_smooth
from torchcaps.train import Run, load_run
from torchcaps.viz import SaliencyPanel, draw_pairs, draw_saliency, to_png

from .predictions import COUNT, predict_poses

_SIDE = 84


def draw_objects(data_dir: Path) -> bytes:
    """Some objects of each dataset in random rotations."""
    sets = {
        "cube_tetrahedron_plain": cube_tetrahedron(borders=False),
        "cube_tetrahedron": cube_tetrahedron(),
        "tiny_meshes": load_meshes(data_dir / TINY_FILE),
    }
    panels = {name: SaliencyPanel(_turned(meshes), {}) for name, meshes in sets.items()}
    return to_png(draw_saliency(panels), scale=1)


def _turned(meshes: MeshSet) -> Tensor:
    """Objects of all classes in turn."""
    rotations = random_rotations(COUNT, generator(0, "objects in docs"))
    view = View(height=_SIDE, width=_SIDE)
    pictures = []
    for place, rotation in enumerate(rotations):
        among = meshes.of_class(place % len(meshes.classes))
        pictures.append(render_smooth(among[place % len(among)], rotation.view(1, 4), view))
    return torch.cat(pictures)


def draw_predictions(run: Run, data_dir: Path | None = None) -> bytes:
    """The first test images of a run, above their objects in the rotations it finds, and its errors."""
    found = predict_poses(run, data_dir)
    captions = [
        f"{error:.1f}°" if is_right else "wrong class"
        for error, is_right in zip(found.errors, found.rights, strict=True)
    ]
    return to_png(draw_pairs(found.seen, found.drawn, titles=("input", "prediction"), captions=captions))


if __name__ == "__main__":
    data_folder, out = (Path(argument) for argument in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    (out / "pose-objects.png").write_bytes(draw_objects(data_folder))
    for name in sys.argv[3:]:
        (out / f"pose-{Path(name).name}.png").write_bytes(draw_predictions(load_run(Path(name)), data_folder))
