"""What a suite is: conditions under which runs are measured, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from torchcaps.core import Registry, UserError, evaluating
from torchcaps.data import LabelledImages
from torchcaps.parse import some_images
from torchcaps.train import Pipeline, Run, load_labelled

_BATCH = {"cuda": 1024}  # by device; other devices take 250


@dataclass(frozen=True)
class Measurement:
    """What was measured of one run under one condition.

    Attributes:
        group: What changes, such as "rotation"; conditions of a group are drawn in one chart.
        condition: How far, such as "15°".
        metrics: By names that `metric_of` knows.
    """

    group: str
    condition: str
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Material:
    """A run with its test images, or some of them."""

    run: Run
    data: LabelledImages
    pipeline: Pipeline
    data_dir: Path | None
    limit: int | None


SuiteFunction: TypeAlias = Callable[[Material], list[Measurement]]
SUITES: Registry[SuiteFunction] = Registry("suite")


def measure_run(
    run: Run, suite: str, *, data_dir: Path | None = None, limit: int | None = None
) -> list[Measurement]:
    """Everything that a suite measures of a run, on all its test images or on `limit` of them."""
    measure = SUITES[suite]
    data, pipeline = load_labelled(run, "test", data_dir=data_dir)
    chosen = some_images(data, limit)
    chosen = chosen.with_images(chosen.images[:])  # they are changed, so those that stay in files are read
    return measure(Material(run, chosen, pipeline, data_dir, limit))


@torch.no_grad()
def activations_of(material: Material, images: Tensor) -> Tensor:
    """The class activations of bytes (count, channels, height, width)."""
    size = _BATCH.get(images.device.type, 250)
    network = material.run.model
    with evaluating(network):
        found = [
            network(material.pipeline.for_evaluation(part).inputs).activations
            for part in torch.split(images, size)
        ]
    activations = torch.cat(found)
    if not activations.isfinite().all():
        raise UserError(f"{material.run.folder} answers with values that are not finite; train it again")
    return activations


def accuracy_on(material: Material, images: Tensor, labels: Tensor | None = None) -> dict[str, float]:
    """The share of images whose class is found; labels are those of the material unless others are given."""
    right = activations_of(material, images).argmax(1) == (material.data.labels if labels is None else labels)
    return {"accuracy": float(right.double().mean())}
