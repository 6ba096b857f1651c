"""What a network is worth on many nodules: means by size and patient, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from torchcaps.core import Plain, UserError, derive_seed, finite_or_none

from .measure import Overlap

MEASURES = ("dice", "iou", "hd95", "volume_error")
SIZES: tuple[tuple[str, float, float], ...] = (
    ("under 6 mm", 0.0, 6.0),
    ("6 to 10 mm", 6.0, 10.0),
    ("over 10 mm", 10.0, math.inf),
)
_DRAWS = 2000
_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Case:
    """One nodule: whose it is, how large it is, and how well it was found."""

    patient: str
    nodule: str
    diameter: float | None  # millimetres, of the true mask; None where nothing is known of millimetres
    overlap: Overlap


class Mean(NamedTuple):
    """The mean of a measure over nodules, and what it would be for other patients of the same kind."""

    mean: float | None
    low: float | None  # None where fewer than two patients were measured
    high: float | None
    defined: int  # nodules for which the measure is defined


def summarise(cases: Sequence[Case]) -> Plain:
    """Means of all measures over all nodules, by their size and by patient, as plain data."""
    if not cases:
        raise UserError("there are no nodules to evaluate")
    return {
        "patients": len({case.patient for case in cases}),
        "nodules": len(cases),
        "missed": sum(case.overlap.dice == 0 < case.overlap.volume for case in cases),  # not one voxel
        "confidence": _CONFIDENCE,
        "all": _measures(cases),
        "by_size": {name: _measures(some) for name, some in _by_size(cases).items() if some},
        "by_patient": {name: _plain_means(some) for name, some in _by_patient(cases).items()},
        "cases": [_row(case) for case in cases],
    }


def _row(case: Case) -> Plain:
    values = finite_or_none(case.overlap._asdict())
    return {"patient": case.patient, "nodule": case.nodule, "diameter": case.diameter, **values}


def _by_size(cases: Iterable[Case]) -> dict[str, list[Case]]:
    return {
        name: [case for case in cases if case.diameter is not None and low <= case.diameter < high]
        for name, low, high in SIZES
    }


def _by_patient(cases: Iterable[Case]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.patient, []).append(case)
    return dict(sorted(found.items()))


def _plain_means(cases: Sequence[Case]) -> Plain:
    values = {name: _values(cases, name) for name in MEASURES}
    means = {name: float(np.mean(each)) if len(each) else None for name, each in values.items()}
    return {"nodules": len(cases), **means}


def _values(cases: Sequence[Case], name: str) -> list[float]:
    """The defined values of a measure; of volume errors the size, for over and under would cancel out."""
    values = (getattr(case.overlap, name) for case in cases)
    return [abs(value) if name == "volume_error" else value for value in values if math.isfinite(value)]


def _measures(cases: Sequence[Case]) -> Plain:
    patients = _by_patient(cases)
    found: Plain = {
        name: bootstrap_mean({patient: _values(some, name) for patient, some in patients.items()})._asdict()
        for name in MEASURES
    }
    return {"nodules": len(cases), "patients": len(patients), **found}


def bootstrap_mean(values: Mapping[str, Sequence[float]]) -> Mean:
    """The mean over all nodules, with an interval from drawing patients with replacement.

    Nodules of one patient resemble each other: drawing nodules would give intervals that are too narrow. The
    same values, by patient, give the same interval.
    """
    patients = [np.asarray(each, dtype=np.float64) for each in values.values() if len(each)]
    count = sum(map(len, patients))
    if not count:
        return Mean(None, None, None, 0)
    sums, counts = (np.array([of(each) for each in patients]) for of in (np.sum, len))
    mean = float(sums.sum() / count)
    if len(patients) < 2:
        return Mean(mean, None, None, count)
    random = np.random.default_rng(derive_seed(0, "bootstrap"))
    drawn = random.integers(len(patients), size=(_DRAWS, len(patients)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    tail = 50 * (1 - _CONFIDENCE)
    low, high = np.percentile(means, [tail, 100 - tail])
    return Mean(mean, float(low), float(high), count)
