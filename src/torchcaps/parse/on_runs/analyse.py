"""A whole split through a network, as it is and with quantized couplings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchcaps.core import UserError, evaluating, generator
from torchcaps.data import LabelledImages
from torchcaps.train import Pipeline, Run, load_labelled

from ..dictionary import Dictionary, KeyCollector, Keys, count_trees
from ..quantize import Levels, evened, levels_of_classes, quantized

_BATCH = {"cuda": 512}  # by device; other devices take 250


@dataclass(frozen=True)
class Analysis:
    """A network on a split: its accuracy with and without quantization, and its parse trees."""

    images: int
    accuracy: float
    quantized_accuracy: float
    even_accuracy: float  # with even couplings, that is without routing
    keys: Keys
    classes: tuple[str, ...]

    @cached_property
    def dictionary(self) -> Dictionary:
        """The parse trees, counted."""
        return count_trees(self.keys)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; entropies in bits, None for a class that nobody predicts."""
        trees = self.dictionary
        return {
            "images": self.images,
            "levels": trees.levels,
            "children": trees.children,
            "accuracy": self.accuracy,
            "quantized_accuracy": self.quantized_accuracy,
            "even_accuracy": self.even_accuracy,
            "entropy": trees.entropy,
            "keys": trees.num_keys,
            "classes": trees.rows(self.classes),
            "never_predicted": [self.classes[number] for number in trees.empty_classes],
        }


@torch.no_grad()
def analyse(
    network: nn.Module,
    data: LabelledImages,
    pipeline: Pipeline,
    *,
    levels: Levels = "even",
    batch_size: int | None = None,
) -> Analysis:
    """Accuracy of a network as it is, quantized and with even couplings, and the keys of its last layer.

    The network runs in evaluation mode on the device of the data, from which results are read once for each
    of the three passes.

    Args:
        network: On the device of the data, and left as it was.
        data: The split, whose labels are those of the network.
        pipeline: Prepares an image for the network.
        levels: As in `quantized`.
        batch_size: Images at once; by default as many as suit the device.
    """
    hits = count_hits(network, data, pipeline, batch_size=batch_size)
    keys = collect_keys(network, data, pipeline, levels=levels, batch_size=batch_size)
    with evened(network):
        even_hits = count_hits(network, data, pipeline, batch_size=batch_size)
    return Analysis(
        images=len(data),
        accuracy=hits / len(data),
        quantized_accuracy=float((keys.predicted == data.labels.cpu().numpy()).mean()),
        even_accuracy=even_hits / len(data),
        keys=keys,
        classes=tuple(data.classes),
    )


@torch.no_grad()
def count_hits(
    network: nn.Module,
    data: LabelledImages,
    pipeline: Pipeline,
    *,
    batch_size: int | None = None,
) -> int:
    """Images whose class the network finds. Arguments as in `analyse`."""
    hits = torch.zeros((), dtype=torch.int64, device=data.labels.device)
    is_finite = torch.ones((), dtype=torch.bool, device=data.labels.device)
    with evaluating(network):
        for inputs, labels in _batches(data, pipeline, batch_size):
            activations = network(inputs).activations
            is_finite &= activations.isfinite().all()
            hits += (activations.argmax(1) == labels).sum()
    _check_answers(is_finite)
    return int(hits)


def _check_answers(is_finite: Tensor) -> None:
    if not is_finite:
        raise UserError(
            "the network answers with values that are not finite: its weights are damaged, or its training "
            "diverged; look at the metrics of the run, and train again with a lower rate"
        )


@torch.no_grad()
def collect_keys(
    network: nn.Module,
    data: LabelledImages,
    pipeline: Pipeline,
    *,
    levels: Levels = "even",
    batch_size: int | None = None,
) -> Keys:
    """The key of every image in the quantized network, without reading labels. Arguments as in `analyse`."""
    collector: KeyCollector | None = None
    # checked here, because rounding hides couplings that are not finite
    is_finite = torch.ones((), dtype=torch.bool, device=data.labels.device)
    with evaluating(network), quantized(network, levels):
        for inputs, _ in _batches(data, pipeline, batch_size):
            output = network(inputs, return_routing=True)
            is_finite &= output.activations.isfinite().all()
            classes = output.activations.shape[1]
            collector = collector or KeyCollector(levels_of_classes(levels, classes), classes)
            collector.add(output.layers[-1].routed.coupling, output.activations.argmax(1))
    _check_answers(is_finite)
    assert collector is not None  # a split without images is refused above
    return collector.keys()


def _batches(
    data: LabelledImages, pipeline: Pipeline, batch_size: int | None
) -> Iterator[tuple[Tensor, Tensor]]:
    if not len(data):
        raise UserError("there are no images to analyse")
    size = batch_size or _BATCH.get(data.labels.device.type, 250)
    for images, labels in data.batches(size):
        yield pipeline.for_evaluation(images).inputs, labels


def analyse_run(
    run: Run,
    split: str = "test",
    *,
    levels: Levels = "even",
    limit: int | None = None,
    data_dir: Path | None = None,
) -> Analysis:
    """`analyse` for one split of a run's own data, or for `limit` images of it."""
    data, pipeline = load_labelled(run, split, data_dir=data_dir)
    return analyse(run.model, some_images(data, limit), pipeline, levels=levels)


def some_images(data: LabelledImages, limit: int | None) -> LabelledImages:
    """At most `limit` images of a split, drawn at random but always the same: classes may have an order."""
    if limit is not None and limit < 1:
        raise UserError(f"limit must be at least 1, got {limit}")
    if limit is None or limit >= len(data):
        return data
    order = torch.randperm(len(data), generator=generator(0, "limit"))
    return data.subset(order[:limit].sort().values)
