"""What a measured number means: its words, its unit, and which way is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .registry import Registry

Better = Literal["higher", "lower", "neither"]
_SPLITS = ("train_", "val_", "test_")


@dataclass(frozen=True)
class Metric:
    """A measured quantity.

    Attributes:
        name: The key in rows and result files, without the split: "accuracy" of "test_accuracy".
        title: What people read.
        better: Which way a comparison goes; "neither" for counts that only describe.
        unit: As printed after a value.
        scale: Stored values times `scale` are in `unit`: 100 for shares shown in percent.
        digits: Decimals that are printed.
    """

    name: str
    title: str
    better: Better
    unit: str = ""
    scale: float = 1.0
    digits: int = 2

    def format(self, value: int | float) -> str:
        """A stored value in words, with its unit."""
        text = f"{self.scale * value:,.{self.digits}f}"
        return f"{text}{self.unit}" if self.unit in ("", "%", "°") else f"{text} {self.unit}"

    def is_better(self, value: float, than: float) -> bool:
        """Whether `value` is strictly better; never where neither way is."""
        return {"higher": value > than, "lower": value < than, "neither": False}[self.better]

    def best(self, values: Sequence[float]) -> float:
        """The best of some values."""
        return max(values) if self.better == "higher" else min(values)


METRICS: Registry[Metric] = Registry("metric")


def register_metrics(*metrics: Metric) -> None:
    """Make metrics known by their names."""
    for metric in metrics:
        METRICS.register(metric.name)(metric)


def metric_of(key: str) -> Metric:
    """The metric behind a key of a row, which may begin with a split: "val_loss"."""
    for split in _SPLITS:
        if key.startswith(split) and key not in METRICS:
            key = key.removeprefix(split)
    return METRICS[key]


register_metrics(
    Metric("loss", "loss", "lower", digits=4),
    Metric("accuracy", "accuracy", "higher", "%", 100.0),
    Metric("accuracy_with_even", "accuracy with even couplings", "neither", "%", 100.0),
)
