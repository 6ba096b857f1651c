"""Test images of a run beside their objects in the rotations it finds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from torchcaps.core import PoseTarget, UserError, rotation_angle
from torchcaps.data import load_dataset
from torchcaps.data.rendering import RenderedImages, render_smooth
from torchcaps.losses import rotations_of
from torchcaps.train import Pipeline, Run
from torchcaps.viz import SaliencyPanel, draw_saliency, to_png

from ..records import Picture, Rows

COUNT = 10
PICTURE = "predictions"


class Predictions(NamedTuple):
    """Images as seen, their objects as predicted, errors in degrees, and whether classes are right."""

    seen: UInt8[Tensor, "count 3 height width"]
    drawn: UInt8[Tensor, "count 3 height width"]
    errors: list[float]
    rights: list[bool]

    def packed(self) -> Picture:
        """Both rows of images."""
        return Picture.pack(torch.stack([self.seen, self.drawn]).float() / 255)


@torch.no_grad()
def predict_poses(run: Run, data_dir: Path | None = None) -> Predictions:
    """The first test images of a run's dataset, which must be one that is rendered when it is read."""
    size = run.model.image_shape[1:]
    examples = load_dataset(run.recipe.data.name, "test", data_dir, size=size)
    rendered, chosen = examples.images, torch.arange(COUNT)
    if not isinstance(rendered, RenderedImages):
        raise UserError(f"{run.folder} was not trained on a dataset that is rendered when it is read")
    images, targets = rendered[chosen], examples.targets_at(chosen)
    assert isinstance(targets, PoseTarget)
    pipeline = Pipeline(run.recipe.data, run.info(data_dir))
    output = run.model(pipeline.for_evaluation(images.to(run.device)).inputs)
    winners = output.activations.argmax(1)
    rotations = rotations_of(output, winners).float().cpu()
    drawn = [
        render_smooth(rendered.meshes[number], rotation.view(1, 4), rendered.view)
        for number, rotation in zip(rendered.numbers[:COUNT].tolist(), rotations, strict=True)
    ]
    errors: Float[Tensor, " count"] = rotation_angle(rotations, targets.rotations)
    rights = winners.cpu() == targets.labels
    return Predictions(images, torch.cat(drawn), errors.tolist(), rights.tolist())


def draw_compared(rows: Rows) -> bytes | None:
    """The images of the first run that kept some, above what each network made of them."""
    kept = {
        row.setting: run.details.pictures[PICTURE].unpack()
        for row in rows
        for run in row.runs
        if PICTURE in run.details.pictures
    }
    if not kept:
        return None
    seen, _ = next(iter(kept.values()))
    panels = {"input": SaliencyPanel(seen, {})}
    panels |= {name: SaliencyPanel(drawn, {}, "rotation found") for name, (_, drawn) in kept.items()}
    return to_png(draw_saliency(panels), scale=1)
