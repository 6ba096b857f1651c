"""What a task is: how its examples are batched, what is measured, and what an answer looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import METRICS, Metric, OutputT, Plain, Registry, TargetsT, UserError
from torchcaps.data import Augment, DatasetInfo, Examples, split_validation
from torchcaps.models import Network

from ..objective import LossSettings, Objective

Kind = TypeVar("Kind", bound=Examples)


class Evaluation(NamedTuple):
    """How well a model did on a split: its loss, the metrics of its task, and tables behind them."""

    loss: float
    metrics: Mapping[str, float]
    tables: Mapping[str, object] = {}

    def value_of(self, metric: Metric) -> float:
        """The value of a metric of the task, or of the loss."""
        return self.loss if metric.name == "loss" else self.metrics[metric.name]

    def named(self, split: str) -> dict[str, float]:
        """Loss and metrics with the name of their split before them."""
        return {f"{split}_{name}": value for name, value in {"loss": self.loss, **self.metrics}.items()}


class Meter(ABC, Generic[OutputT, TargetsT]):
    """Collects what a model says of a split, batch by batch, on the device of the data.

    What it collects adds up, so that the result does not depend on how a split was cut into batches.
    """

    def __init__(self, examples: Examples, objective: Objective) -> None:
        self.examples, self.objective = examples, objective
        self._loss = torch.zeros((), device=examples.device)
        self._count = 0

    def add(self, output: OutputT, targets: TargetsT, images: Tensor) -> None:
        """Take in a batch; `images` are what a decoder should have drawn."""
        self._loss += self.objective.evaluate(output, targets, images) * len(images)
        self._count += len(images)
        self.measure(output, targets)

    @abstractmethod
    def measure(self, output: OutputT, targets: TargetsT) -> None:
        """Collect what the metrics need of a batch."""

    @abstractmethod
    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """The metrics of all that was collected, and the tables behind them as plain data."""

    def loss(self) -> float:
        """The mean loss of all examples."""
        return float(self._loss) / self._count

    def result(self) -> Evaluation:
        """The evaluation of all that was collected."""
        return Evaluation(self.loss(), *self.metrics())


@dataclass(frozen=True)
class Answer:
    """What a network says of one image: plain data, one line in words, and pictures by name."""

    row: Plain
    words: str
    pictures: dict[str, Image.Image] = field(default_factory=dict)


class Task(ABC, Generic[OutputT, TargetsT]):
    """One kind of problem; everything that trains, evaluates, predicts or exports asks it and knows no other.

    A task has no state and no settings.
    """

    name: ClassVar[str]
    examples: ClassVar[type[Examples]]  # what it learns from
    default_loss: ClassVar[str]
    knows_classes: ClassVar[bool] = True  # whether a network answers with the classes it was trained on
    is_explained: ClassVar[bool] = False  # whether `torchcaps explain` shows why a network answers as it does
    metric_names: ClassVar[tuple[str, ...]]  # in METRICS; the first is the one that people quote

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What evaluation gives beside the loss."""
        return tuple(METRICS[name] for name in self.metric_names)

    def shown_metrics(self, loss: LossSettings) -> tuple[Metric, ...]:
        """The metrics that say something of a network with this loss."""
        del loss
        return self.metrics

    @property
    def leading_metric(self) -> Metric:
        """The metric that people quote."""
        return METRICS[self.metric_names[0]]

    def metric(self, name: str) -> Metric:
        """The loss or one of the metrics, by name."""
        if name not in ("loss", *self.metric_names):
            known = ", ".join(("loss", *self.metric_names))
            raise UserError(f"{self.name} has no metric {name!r}; known: {known}")
        return METRICS[name]

    def check_model(self, model: Network, info: DatasetInfo) -> None:
        """Raise where a model does not fit the classes of a dataset."""
        config = model.config
        if config.num_classes != len(info.classes):
            raise UserError(
                f"the model has {config.num_classes} classes, dataset {info.name} {len(info.classes)}; "
                f"set model.num_classes={len(info.classes)}"
            )

    def check_augment(self, augment: Augment) -> None:
        """Raise where random changes would make the targets wrong."""
        del augment

    def split(self, examples: Kind, fraction: float, seed: int) -> tuple[Kind, Kind]:
        """The part that trains and the part that validates."""
        return split_validation(examples, fraction, seed)

    def batches(
        self, examples: Examples, batch_size: int, per_place: int, random: torch.Generator
    ) -> list[Tensor]:
        """The indices of all batches of an epoch, in an order that `random` draws; a rest is left out."""
        del per_place
        if batch_size > len(examples):
            raise UserError(
                f"batch_size {batch_size} is more than the {len(examples):,} training images; add images, or "
                f"give --set batch_size={len(examples)}"
            )
        order = torch.randperm(len(examples), generator=random)
        return list(torch.split(order, batch_size))[: len(examples) // batch_size]

    def call(
        self,
        model: Callable[..., OutputT],
        inputs: Tensor,
        targets: TargetsT | None,
        *,
        return_routing: bool = False,
    ) -> OutputT:
        """What a model returns for normalised images; the targets tell a decoder what to draw."""
        decoded = () if targets is None else self.decoded(model, targets)
        return model(inputs, *decoded, return_routing=return_routing)

    def decoded(self, model: Callable[..., OutputT], targets: TargetsT) -> tuple[Any, ...]:
        """What tells a decoder which capsules to draw: the targets."""
        del model
        return (targets,)

    def drawn(self, images: Tensor, targets: TargetsT) -> Tensor:
        """What a decoder should draw: the images in [0, 1]."""
        del targets
        return images

    @abstractmethod
    def meter(self, examples: Examples, objective: Objective) -> Meter[OutputT, TargetsT]:
        """A new meter for a split."""

    @abstractmethod
    def outputs(self, output: OutputT) -> dict[str, Tensor]:
        """The tensors of an output by name, the most important first: what an exported file gives."""

    @abstractmethod
    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """What `outputs` of a batch of one say of a picture."""


AnyTask: TypeAlias = Task[Any, Any]  # whichever it is
TASKS: Registry[type[AnyTask]] = Registry("task", Task)


def task_named(name: str) -> AnyTask:
    """The task registered as `name`."""
    return TASKS[name]()
