"""Which patients train, validate and test: by patient, never by slice, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torchcaps.core import UserError, counted, digest_of

SHARES = (1.0, 0.5, 0.1)  # of the training patients
_TEST, _VALIDATION = 0.2, 0.1  # of all patients
_MOST_FOLDS = 20  # patients; with more, leaving out one at a time takes too long


@dataclass(frozen=True)
class PatientSplit:
    """Names of the patients that train, validate and test."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]


def shuffled(names: Iterable[str]) -> list[str]:
    """The names in an order that depends on nothing but them."""
    return sorted(set(names), key=digest_of)


def split_patients(names: Iterable[str]) -> PatientSplit:
    """A fifth of the patients tests, a tenth validates, at least one each; the others train."""
    order = shuffled(names)
    if len(order) < 3:
        raise UserError(
            f"{counted(len(order), 'patient')} with nodules cannot be split: training, validation and test "
            "need one each at least, so give three or more"
        )
    test, validation = (max(1, round(share * len(order))) for share in (_TEST, _VALIDATION))
    return PatientSplit(
        tuple(order[test + validation :]), tuple(order[test : test + validation]), tuple(order[:test])
    )


def take_share(split: PatientSplit, share: float) -> PatientSplit:
    """So many of the training patients, at least one; a larger share holds all of a smaller one."""
    if not 0 < share <= 1:
        raise UserError(f"a share of the training patients lies between 0 and 1, got {share}")
    return replace(split, train=split.train[: max(1, round(share * len(split.train)))])


def leave_one_out(names: Iterable[str]) -> dict[str, PatientSplit]:
    """For each patient the split in which it tests and the next one validates; none with many patients."""
    order = shuffled(names)
    if not 3 <= len(order) <= _MOST_FOLDS:
        return {}
    folds = {}
    for number, name in enumerate(order):
        others = order[number + 1 :] + order[:number]
        folds[name] = PatientSplit(tuple(others[1:]), (others[0],), (name,))
    return folds


def share_name(share: float) -> str:
    """The folder of a share, such as share-50."""
    return f"share-{100 * share:g}"


def fold_name(patient: str) -> str:
    """The folder of the split that tests a patient."""
    return f"fold-{patient}"
