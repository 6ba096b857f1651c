"""Each of two overlaid digits, drawn from its own class capsule (Sabour 2017, figure 5)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import Number, UserError
from torchcaps.data import OverlaidImages
from torchcaps.losses import reconstruction_loss
from torchcaps.train import Pipeline, Run, load_split
from torchcaps.viz import SaliencyPanel, draw_saliency, to_png

from ..records import Picture, Rows
from ..rem.frozen_decoder import class_capsules, fit_decoder

_EPOCHS = 20  # of the decoder
_SHOWN = 8
_DRAWN = {  # titles of the rows of a picture, and what each shows
    "two digits": "image",
    "one of them": "digit",
    "drawn from its capsule": "drawing",
    "the other": "digit",
    "drawn from its own": "drawing",
}


class Drawn(NamedTuple):
    """Errors of the digits of test images, and the first of them as they were drawn."""

    metrics: dict[str, Number]
    picture: Picture  # (image, five rows, height, width): both, one, drawn, the other, drawn


def draw_digits(run: Run, *, seed: int, data_dir: Path | None = None) -> Drawn:
    """Train a decoder on the class capsules of a frozen network and draw each test digit by itself."""
    known, pipeline = _overlaid(run, "train", data_dir)
    poses, _ = class_capsules(run.model, known.images, pipeline)
    digits = known.alone.flatten(0, 1).unsqueeze(1)  # first and second of each image in turn
    decoder = fit_decoder(
        poses.repeat_interleave(2, dim=0),
        known.labels.flatten(),
        lambda chosen: digits[chosen].float() / 255,
        epochs=min(_EPOCHS, run.recipe.epochs),
        seed=seed,
    )
    test, _ = _overlaid(run, "test", data_dir)
    poses, activations = class_capsules(run.model, test.images, pipeline)
    matched = match_classes(activations.topk(2, dim=1).indices, test.labels)
    with torch.no_grad():
        drawn = torch.stack([decoder(poses, column)[:, 0] for column in matched.unbind(1)], dim=1)
    alone, both = test.alone.float() / 255, test.images.float() / 255
    metrics: dict[str, Number] = {
        "reconstruction_error": _error(drawn, alone),
        "class_mean_error": _error(digit_means(known)[test.labels], alone),
        "whole_image_error": _error(both.expand_as(alone), alone),
    }
    first = slice(0, _SHOWN)
    rows = [both[first, 0], alone[first, 0], drawn[first, 0], alone[first, 1], drawn[first, 1]]
    return Drawn(metrics, Picture.pack(torch.stack(rows, dim=1)))


def _overlaid(run: Run, split: str, data_dir: Path | None) -> tuple[OverlaidImages, Pipeline]:
    found, pipeline = load_split(run, split, data_dir=data_dir)
    if not isinstance(found, OverlaidImages):
        raise UserError(f"{run.folder} has no images of two objects; train it on multimnist")
    return found, pipeline


def match_classes(found: Int[Tensor, "count 2"], true: Int[Tensor, "count 2"]) -> Int[Tensor, "count 2"]:
    """The found class that stands for each true one: itself where it was found, else the one left over."""
    is_swapped = (found[:, 0] == true[:, 1]) | (found[:, 1] == true[:, 0])
    return torch.where(is_swapped.unsqueeze(1), found.flip(1), found)


def digit_means(data: OverlaidImages) -> Float[Tensor, "classes height width"]:
    """The mean digit of each class: the best drawing from the class alone."""
    labels, digits = data.labels.flatten(), data.alone.flatten(0, 1)
    of_class = (digits[labels == number] for number in range(len(data.classes)))  # one float copy at a time
    return torch.stack([some.float().sum(0) / max(1, len(some)) / 255 for some in of_class])


def _error(drawn: Tensor, alone: Tensor) -> float:
    """Squared pixel differences, summed over a digit, in the mean over digits."""
    return float(reconstruction_loss(drawn.flatten(0, 1).unsqueeze(1), alone.flatten(0, 1).unsqueeze(1)))


def draw_segmented(rows: Rows) -> bytes | None:
    """Overlaid digits above each digit and its drawing, of the first run that has them."""
    kept = (run.details.pictures for row in rows for run in row.runs)
    stored = next((pictures["digits"] for pictures in kept if pictures), None)
    if stored is None:
        return None
    columns = np.swapaxes(stored.unpack(), 0, 1)
    panels = {
        title: SaliencyPanel(row, {}, label)
        for (title, label), row in zip(_DRAWN.items(), columns, strict=True)
    }
    return to_png(draw_saliency(panels), scale=1)
