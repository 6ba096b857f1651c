"""A task that the library has never seen, written after docs/adding-a-task.md, keeps the contract."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn

from torchcaps.core import UserError
from torchcaps.core.metric import METRICS, Metric, register_metrics
from torchcaps.data import DATASETS, DatasetInfo, Examples
from torchcaps.losses import LOSSES, Loss
from torchcaps.models import MODELS, Network, register_variants
from torchcaps.train import LossSettings, Objective
from torchcaps.train.tasks import TASKS, Answer, Meter, Task

from tasks.contract import TaskContract


class BrightnessOutput(NamedTuple):
    brightness: torch.Tensor
    reconstruction: None = None
    layers: tuple = ()


class GreyImages(Examples):
    task = "brightness"

    def __init__(self, images, values, classes=("light",)):
        super().__init__(images, {"values": values}, classes)

    def _check_targets(self):
        if self.targets["values"].shape != (len(self.images),):
            raise UserError("one brightness for each image is needed")

    def targets_at(self, indices):
        return self.targets["values"][indices]


@dataclass(frozen=True, kw_only=True)
class SquaredLoss(Loss):
    task = "brightness"

    def __call__(self, output, values, /, **_):
        return (output.brightness - values).square().mean()


class ErrorMeter(Meter):
    def __init__(self, examples, objective):
        super().__init__(examples, objective)
        self._error = 0.0

    def measure(self, output, targets):
        self._error += float((output.brightness - targets).abs().double().sum())

    def metrics(self):
        return {"brightness_error": self._error / self._count}, {}


class Brightness(Task):
    name = "brightness"
    examples = GreyImages
    default_loss = "squared_brightness"
    metric_names = ("brightness_error",)

    def meter(self, examples, objective):
        return ErrorMeter(examples, objective)

    def outputs(self, output):
        return {"brightness": output.brightness}

    def answer(self, outputs, info, picture):
        value = round(float(outputs["brightness"][0]), 6)
        return Answer({"brightness": value}, f"brightness {value:.3f}")


@dataclass(frozen=True, kw_only=True)
class MeterNetConfig:
    in_channels: int = 1
    image_size: int = 8
    num_classes: int = 1


class MeterNet(Network):
    config: MeterNetConfig
    decoder = None

    def __init__(self, config):
        super().__init__(config)
        self.read = nn.Linear(config.in_channels, 1)

    def forward(self, images, targets=None, *, return_routing=False):
        self.require_images(images)
        return BrightnessOutput(self.read(images.mean((2, 3))).squeeze(1))


def read_greys(data_dir, split):
    random = torch.Generator().manual_seed(len(split))
    values = torch.rand(60 if split == "train" else 20, generator=random)
    images = (255 * values).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 8, 8).contiguous()
    return GreyImages(images, values)


GREYS = DatasetInfo(
    name="greys",
    title="grey squares",
    channels=1,
    height=8,
    width=8,
    classes=("light",),
    mean=(0.5,),
    std=(0.3,),
    num_train=60,
    num_test=20,
    licence="made by the test",
    reader=read_greys,
    task="brightness",
)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """The parts of the task by their names, in this module alone."""
    register_metrics(Metric("brightness_error", "error of brightness", "lower", digits=3))
    LOSSES.register("squared_brightness")(SquaredLoss)
    DATASETS.register("greys")(GREYS)
    TASKS.register("brightness")(Brightness)
    variants = {"meter_net": MeterNetConfig()}
    register_variants(
        MeterNet, family="meter_net", paper="sabour2017dynamic", variants=variants, task="brightness"
    )
    yield
    names = ("brightness_error", "squared_brightness", "greys", "brightness", "meter_net")
    for registry, name in zip((METRICS, LOSSES, DATASETS, TASKS, MODELS), names, strict=True):
        del registry._entries[name]


class TestBrightness(TaskContract):
    recipe = {
        "model": {"name": "meter_net"},
        "data": {"name": "greys", "validation": 0.2},
        "batch_size": 16,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        values = torch.tensor([0.2, 0.5, 1.0])
        objective = Objective(LossSettings(task_loss=SquaredLoss()), has_decoder=False)
        found = Brightness().meter(GreyImages(torch.zeros(3, 1, 8, 8, dtype=torch.uint8), values), objective)
        found.add(BrightnessOutput(torch.tensor([0.1, 0.5, 0.5])), values, torch.zeros(3, 1, 8, 8))
        evaluation = found.result()
        assert evaluation.metrics["brightness_error"] == pytest.approx(0.2)
        assert evaluation.loss == pytest.approx(0.26 / 3)
