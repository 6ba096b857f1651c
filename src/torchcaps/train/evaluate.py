"""Loss, accuracy and confusion of a model over a whole split, read from the device once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchcaps.core import evaluating
from torchcaps.core.errors import UserError
from torchcaps.data import LabelledImages

from .objective import Objective
from .pipeline import Pipeline


class Evaluation(NamedTuple):
    """How well a model did on a split."""

    loss: float
    accuracy: float
    confusion: Tensor  # (true class, predicted class), counts


@torch.no_grad()
def evaluate(
    model: Any, data: LabelledImages, pipeline: Pipeline, objective: Objective, batch_size: int = 512
) -> Evaluation:
    """Evaluate in large batches; the decoder draws from the longest capsule, as at inference."""
    if not len(data):
        raise UserError("there are no images to evaluate")
    classes = len(data.classes)
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=data.labels.device)
    loss = torch.zeros((), device=data.labels.device)
    parts = torch.split(data.images, batch_size), torch.split(data.labels, batch_size)
    with evaluating(model):
        for images, labels in zip(*parts, strict=True):
            shown, inputs = pipeline.for_evaluation(images)
            output = model(inputs)
            loss += objective.evaluate(output, labels, shown) * len(labels)
            confusion += torch.bincount(labels * classes + output.activations.argmax(1), minlength=classes**2)
    table = confusion.view(classes, classes).cpu()
    return Evaluation(float(loss) / len(data), float(table.diagonal().sum()) / len(data), table)
