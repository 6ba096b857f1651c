"""What a run found, by training or by more than that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchcaps.core import Number
from torchcaps.train import RunPart, TrainResult

from ..records import Details


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Metrics and details of a run; `extra` are further keys of its `result.json`.

    Attributes:
        parts: Where each part was trained, of a run that was stopped and went on elsewhere.
    """

    metrics: Mapping[str, Number]
    parameters: int
    seconds: float
    precision: str
    details: Details = field(default_factory=Details)
    extra: Mapping[str, object] = field(default_factory=dict)
    parts: Sequence[RunPart] = ()

    @classmethod
    def of_training(cls, trained: TrainResult) -> Outcome:
        """What the training found, by the content of its `result.json`."""
        return cls(
            metrics=trained["metrics"],
            parameters=trained["parameters"],
            seconds=trained["seconds"],
            precision=trained["precision"],
            parts=trained.get("parts", ()),
        )

    def with_metrics(self, metrics: Mapping[str, Number]) -> Outcome:
        """The same with further metrics."""
        return replace(self, metrics={**self.metrics, **metrics})

    def as_json(self) -> dict[str, object]:
        """The keys of `result.json` that tell what was found."""
        return {
            "metrics": dict(self.metrics),
            **{key: getattr(self, key) for key in ("parameters", "seconds", "precision")},
            **({"parts": self.parts} if self.parts else {}),
            **self.extra,
            **self.details.as_json(),
        }
