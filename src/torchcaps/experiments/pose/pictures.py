"""The pictures of docs/pose.md: run this module with a data folder, a target, and runs of pose networks."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core.errors import UserError
from torchcaps.core.rotation import random_rotations, rotation_angle
from torchcaps.core.seeding import generator
from torchcaps.core.types import PoseTarget
from torchcaps.data import load_dataset
from torchcaps.data.rendering import (
    TINY_FILE,
    MeshSet,
    RenderedImages,
    View,
    cube_tetrahedron,
    load_meshes,
    render_smooth,
)
from torchcaps.losses import rotations_of
from torchcaps.train import Pipeline, Run, load_run
from torchcaps.viz import SaliencyPanel, draw_pairs, draw_saliency, to_png

_COUNT = 10
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
    rotations = random_rotations(_COUNT, generator(0, "objects in docs"))
    view = View(height=_SIDE, width=_SIDE)
    pictures = []
    for place, rotation in enumerate(rotations):
        among = meshes.of_class(place % len(meshes.classes))
        pictures.append(render_smooth(among[place % len(among)], rotation.view(1, 4), view))
    return torch.cat(pictures)


@torch.no_grad()
def draw_predictions(run: Run, data_dir: Path | None = None) -> bytes:
    """The first test images of a run, above their objects in the rotations it finds, and its errors."""
    size = run.model.image_shape[1:]
    examples = load_dataset(run.recipe.data.name, "test", data_dir, size=size)
    rendered, chosen = examples.images, torch.arange(_COUNT)
    if not isinstance(rendered, RenderedImages):
        raise UserError(f"{run.folder} was not trained on a dataset that is rendered when it is read")
    images, targets = rendered[chosen].to(run.device), examples.targets_at(chosen)
    assert isinstance(targets, PoseTarget)
    pipeline = Pipeline(run.recipe.data, run.info(data_dir))
    output = run.model(pipeline.for_evaluation(images).inputs)
    winners = output.activations.argmax(1)
    rotations = rotations_of(output, winners).cpu()
    drawn = [
        render_smooth(rendered.meshes[number], rotation.view(1, 4), rendered.view)
        for number, rotation in zip(rendered.numbers[:_COUNT].tolist(), rotations, strict=True)
    ]
    captions = [
        f"{error:.1f}°" if is_right else "wrong class"
        for error, is_right in zip(
            rotation_angle(rotations, targets.rotations).tolist(),
            (winners.cpu() == targets.labels).tolist(),
            strict=True,
        )
    ]
    titles = ("input", "prediction")
    return to_png(draw_pairs(images.cpu(), torch.cat(drawn), titles=titles, captions=captions))


if __name__ == "__main__":
    data_folder, out = (Path(argument) for argument in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    (out / "pose-objects.png").write_bytes(draw_objects(data_folder))
    for name in sys.argv[3:]:
        (out / f"pose-{Path(name).name}.png").write_bytes(draw_predictions(load_run(Path(name)), data_folder))
