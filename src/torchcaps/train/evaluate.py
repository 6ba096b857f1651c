"""Evaluates a model on a split; results are read from the device once, at the end."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import nn

from torchcaps.core import UserError, evaluating
from torchcaps.data import Examples

from .objective import Objective
from .pipeline import Pipeline
from .tasks import AnyTask, Evaluation

_AT_ONCE = {  # images and pixels of an evaluation batch
    "cuda": (2048, 1 << 23),
    "cpu": (128, 1 << 19),  # larger ones are slower: the system clears their memory anew for each
}


def evaluation_batch(examples: Examples) -> int:
    """How many images are evaluated at once: fewer where they are large."""
    most, pixels = _AT_ONCE.get(examples.device.type, (512, 1 << 21))
    return max(1, min(most, pixels // prod(examples.images.shape[2:])))


@torch.no_grad()
def evaluate(
    model: nn.Module,
    examples: Examples,
    task: AnyTask,
    pipeline: Pipeline,
    objective: Objective,
    *,
    batch_size: int | None = None,
    on_images: Callable[[int], None] = lambda images: None,
) -> Evaluation:
    """Evaluate in large batches; a decoder draws the longest capsule, as at inference.

    Args:
        model: A network of the task.
        examples: The split.
        task: Says what is measured.
        pipeline: Prepares images and targets.
        objective: The loss.
        batch_size: Changes memory and time alone.
        on_images: Told after each batch how many images it had.
    """
    if not len(examples):
        raise UserError("there are no images to evaluate")
    meter = task.meter(examples, objective)
    with evaluating(model):
        for images, targets in examples.batches(batch_size or evaluation_batch(examples)):
            batch = pipeline.for_evaluation(images, targets)
            drawn = task.drawn(batch.images, batch.targets)
            meter.add(task.call(model, batch.inputs, None), batch.targets, drawn)
            on_images(len(images))
    return meter.result()
