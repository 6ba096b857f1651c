"""What a network reaches over several seeds: rows of a result file that `torchcaps reproduce` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from torchcaps.core import METRICS, MissingDataError, UserError, metric_of, unknown_name
from torchcaps.storage import read_json


@dataclass(frozen=True, kw_only=True)
class SeedMean:
    """A metric over runs that differ in their seeds; `spread` is None for a single run."""

    metric: str
    mean: float
    spread: float | None
    seeds: int

    def __str__(self) -> str:
        metric = metric_of(self.metric)
        deviation = "" if self.spread is None else f" ± {metric.format(self.spread)}"
        return f"{metric.title} {metric.format(self.mean)}{deviation}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The rows of one setting in a result file.

    Attributes:
        file: The result file, by its name.
        setting: Which rows of it.
        protocol: How their runs were made, in words.
        metrics: Of test images.
    """

    file: str
    setting: str
    protocol: str
    metrics: tuple[SeedMean, ...]


def read_evidence(path: Path, setting: str, model: str) -> Evidence:
    """The test metrics of a setting in a result file; its runs must be of the same model."""
    if not path.is_file():
        raise MissingDataError(f"there is no result file {path}")
    rows = read_json(path).get("rows", [])
    chosen = [row for row in rows if row["setting"] == setting and _is_test_metric(row["metric"])]
    if not chosen:
        raise unknown_name(f"setting in {path}:", setting, sorted({row["setting"] for row in rows}))
    protocols = chosen[0]["protocols"]
    for protocol in protocols:
        trained = str(protocol.get("model", "")).partition("(")[0]
        if trained and trained != model:
            raise UserError(f"{setting!r} in {path} are runs of {trained}, this one is of {model}")
    return Evidence(
        file=f"results/{path.name}",
        setting=setting,
        protocol="; or ".join(_in_words(protocol) for protocol in protocols),
        metrics=tuple(_mean(row) for row in chosen),
    )


def _is_test_metric(key: str) -> bool:
    return key == "accuracy_with_even" or (key.startswith("test_") and key.removeprefix("test_") in METRICS)


def _mean(row: dict[str, Any]) -> SeedMean:
    values = [float(run["value"]) for run in row["runs"]]
    spread = stdev(values) if len(values) > 1 else None
    return SeedMean(metric=row["metric"], mean=mean(values), spread=spread, seeds=len(values))


def _in_words(protocol: dict[str, Any]) -> str:
    parts = (
        f"{protocol['budget']} budget" if protocol.get("budget") else "",
        f"at most {protocol['epochs']} epochs" if protocol.get("epochs") else "",
        f"{protocol['images']:,} images" if protocol.get("images") else "",
        f"`{protocol['model']}`" if protocol.get("model") else "",
        str(protocol.get("note", "")),
    )
    return ", ".join(part for part in parts if part)
