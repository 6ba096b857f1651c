"""Classes of images that lie on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from torchcaps.core.errors import UserError
from torchcaps.data import DatasetInfo, middle_square, opened_picture

from .pipeline import Pipeline
from .recipe import Data
from .run import Run

_MODES = {1: "L", 3: "RGB"}


def read_image(path: Path, info: DatasetInfo) -> Tensor:
    """The image as bytes (1, channels, height, width), in the colours and size of the dataset.

    It is stretched to that size; where the dataset's own photographs are cropped to squares, cropped.
    """
    if info.channels not in _MODES:
        raise UserError(f"image files have 1 or 3 channels; this model wants {info.channels}")
    with opened_picture(path) as file:
        image = file.convert(_MODES[info.channels])
    if info.sized_reader is not None:
        image = middle_square(image, info.height)
    elif image.size != (info.width, info.height):
        image = image.resize((info.width, info.height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.uint8).copy()
    return torch.from_numpy(pixels).reshape(*pixels.shape[:2], info.channels).permute(2, 0, 1).unsqueeze(0)


@dataclass(frozen=True)
class Predictor:
    """All it takes to classify an image file: what becomes of the image, and the network behind it."""

    info: DatasetInfo
    data: Data
    device: torch.device
    activations: Callable[[Tensor], Tensor]  # normalised images to (batch, classes)


def predictor_of(run: Run, data_dir: Path | None = None) -> Predictor:
    """The predictor of a run, on the device its network is on."""
    return Predictor(
        info=run.info(data_dir),
        data=run.recipe.data,
        device=next(run.model.parameters()).device,
        activations=lambda inputs: run.model(inputs).activations,
    )


@torch.no_grad()
def predict(
    source: Run | Predictor, paths: Sequence[Path], data_dir: Path | None = None
) -> list[dict[str, Any]]:
    """Class, its capsule's activation, and all activations by class name, for each image file."""
    predictor = source if isinstance(source, Predictor) else predictor_of(source, data_dir)
    info = predictor.info
    pipeline = Pipeline(predictor.data, info)
    rows = []
    for path in paths:
        image = read_image(path, info)
        _, inputs = pipeline.for_evaluation(image.to(predictor.device))
        activations = predictor.activations(inputs)[0].float().cpu()
        winner = int(activations.argmax())
        named = {name: round(float(value), 6) for name, value in zip(info.classes, activations, strict=True)}
        rows.append(
            {
                "image": str(path),
                "class": info.classes[winner],
                "activation": round(float(activations[winner]), 6),
                "activations": named,
            }
        )
    return rows
