"""One row of a table or point of a figure: a metric of a setting, over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from torchcaps.core import MissingDataError, Number, UserError, build_dataclass
from torchcaps.storage import read_json

from .details import Details
from .protocol import Budget, Protocol
from .result import RunFacts


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """One run behind a row: its value as it was measured, and how it was made."""

    facts: RunFacts
    value: Number
    details: Details

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RowRun:
        """Read a run of a row."""
        facts = RunFacts.from_json(content, "row.runs")
        return cls(facts=facts, value=content["value"], details=Details.from_json(content))

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what is not known."""
        return {**_without_defaults(self.facts), "value": self.value, **self.details.as_json()}


@dataclass(frozen=True, kw_only=True)
class MeanCurve:
    """How a metric goes within the runs: mean, deviation and number of runs at each place."""

    at: tuple[int, ...] = ()
    mean: tuple[Number, ...] = ()
    spread: tuple[Number | None, ...] = ()
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one setting: mean and deviation over runs, beside what the thesis prints.

    Attributes:
        setting: Its name.
        network: What settings that are compared have in common.
        variant: In what they differ.
        metric: A key that `metric_of` knows.
        thesis: The printed figure, in the unit of the metric.
        ours: The mean over runs, in the same unit.
        spread: The deviation over runs; None for a single one.
        protocols: How the runs were made; several where only some used up their epochs.
    """

    setting: str
    network: str = ""
    variant: str = ""
    metric: str
    thesis: Number | None = None
    ours: Number
    spread: Number | None = None
    protocols: tuple[Protocol, ...]
    runs: tuple[RowRun, ...]
    curve: MeanCurve | None = None

    @property
    def seeds(self) -> int:
        """The number of runs."""
        return len(self.runs)

    @property
    def budget(self) -> Budget | None:
        """The budget of the runs; None where a script made them."""
        return self.protocols[0].budget if self.protocols else None

    @property
    def is_cut_short(self) -> bool:
        """Whether the epochs of some run ended before its search for a number of iterations did."""
        return any(protocol.iterations and protocol.is_used_up for protocol in self.protocols)

    @property
    def protocol(self) -> str:
        """How the runs were made, in words."""
        return "; or ".join(dict.fromkeys(map(str, self.protocols)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Row:
        """Read a row of a result file."""
        where = f"row {content['setting']}, {content['metric']}"
        plain = {key: content[key] for key in _PLAIN if key in content}
        curve = content.get("curve")
        return cls(
            **plain,
            protocols=tuple(build_dataclass(Protocol, one, where) for one in content["protocols"]),
            runs=tuple(RowRun.from_json(run) for run in content["runs"]),
            curve=None if curve is None else build_dataclass(MeanCurve, curve, where),
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what is empty."""
        content = {
            "setting": self.setting,
            **({"network": self.network, "variant": self.variant} if self.network else {}),
            **{key: getattr(self, key) for key in ("metric", "thesis", "ours", "spread", "seeds")},
            "protocols": [_without_defaults(protocol) for protocol in self.protocols],
            "runs": [run.as_json() for run in self.runs],
        }
        return content if self.curve is None else {**content, "curve": asdict(self.curve)}

    def without_details(self) -> Row:
        """The same row without the details of its runs."""
        return replace(self, runs=tuple(replace(run, details=Details()) for run in self.runs))


_PLAIN = ("setting", "network", "variant", "metric", "thesis", "ours", "spread")


def _without_defaults(record: RunFacts | Protocol) -> dict[str, Any]:
    return {
        field.name: getattr(record, field.name)
        for field in fields(record)
        if getattr(record, field.name) != field.default
    }


def load_rows(folder: Path, label: str) -> list[Row]:
    """Rows of one table or figure, by its label with ':' and spaces as '-'."""
    path = folder / f"{label}.json"
    if not path.is_file():
        raise MissingDataError(f"no results at {path}")
    try:
        return [Row.from_json(row) for row in read_json(path)["rows"]]
    except KeyError as error:
        raise UserError(
            f"{path} holds rows without {error}, perhaps of an older version: delete it, and gather its runs "
            "again with torchcaps reproduce"
        ) from error
    except (TypeError, AttributeError, UserError) as error:
        raise UserError(f"{path} is damaged ({error}); restore it, or delete it") from error


def by_setting(rows: Iterable[Row], metric: str) -> dict[str, Row]:
    """The rows of a metric, by the name of their setting."""
    return {row.setting: row for row in rows if row.metric == metric}


def by_setting_and_metric(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """All rows, by the name of their setting and by their metric."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.setting, {})[row.metric] = row
    return found


def details_of(rows: Iterable[Row]) -> dict[str, list[Details]]:
    """Details of the runs of each setting; its first row carries them."""
    found: dict[str, list[Details]] = {}
    for row in rows:
        found.setdefault(row.setting, [run.details for run in row.runs if run.details])
    return found


Rows = Sequence[Row]
