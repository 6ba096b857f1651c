"""The claims of the REM chapter about its figures, decided by rows and by the details of their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from torchcaps.core import metric_of

from ..plan import (
    EXPERIMENTS,
    Case,
    Check,
    Effect,
    Finding,
    Mean,
    RowsOf,
    Verdict,
    decide,
    decide_together,
    difference,
    excess,
)
from ..records import Details, Rows, Series, by_setting, details_of
from .claims import EFFECT
from .setting import pairs_of

_ALONG_TRAINING = ("entropy", "quantized_accuracy")
_LOW = 0.6  # share of another entropy that counts as low
_NEARLY_ALL = 0.95  # share of the couplings


def compare(label: str, metric: str, lower: str, higher: str, *, by: float = EFFECT) -> Check:
    """A metric is lower in one setting than in another, by at least a twentieth or another share."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        if lower not in found or higher not in found:
            return Finding("open", "one of the two has not been looked at")
        first, second, unit = found[lower], found[higher], metric_of(metric).unit
        low, high = Mean.of_row(first), Mean.of_row(second)
        gap = difference(high, low)
        because = f"{first.ours:.3g} {unit} ({lower}), {second.ours:.3g} {unit} ({higher}), difference {gap}"
        return Finding(decide(difference(high.times(1 - by), low)), because)

    return check


def is_low(label: str, lower: str, higher: str) -> Check:
    """The entropy of one setting is below six tenths of that of another."""
    return compare(label, "entropy", lower, higher, by=1 - _LOW)


def even_at_first(label: str, first: str, best: str) -> Check:
    """After one epoch 95 % of the couplings are an equal share, and fewer are strong than at the best."""
    stronger = compare(label, "strong_share", first, best)

    def check(rows_of: RowsOf) -> Finding:
        rows = rows_of(label)
        found = details_of(rows).get(first, ())
        finding = stronger(rows_of)
        if not found:
            return Finding("open", finding.because)
        even = Mean.of_values([100 * _even_share(details) for details in found])
        cases: dict[str, Case | Verdict] = {
            "an equal share": _case_of_details(excess(even, 100 * _NEARLY_ALL), rows),
            "the strong ones": finding.verdict,
        }
        because = f"{even.value:.2f} % an equal share after one epoch; strong: {finding.because}"
        return decide_together(cases, len(cases), because)

    return check


def _even_share(details: Details) -> float:
    """The share of the couplings at the level of one parent in as many as there are classes."""
    shares, levels = details.series["shares"], details.series["levels"]
    return float(shares[:, np.abs(levels - 1 / len(shares)).argmin()].mean())


def fewer_trees_in_every_class(rows_of: RowsOf) -> Finding:
    """The number of trees is lower with REM in every class."""
    rows = rows_of("fig:mnist-dictionary-test")
    found = details_of(rows)
    plain, rem = (
        np.array([details.series["keys"] for details in found.get(name, ())], dtype=float)
        for name in ("DR-CapsNet+Q", "DR-CapsNet+REM")
    )
    if not len(plain) or not len(rem):
        return Finding("open", "one of the two has not been looked at")
    cases: dict[str, Case] = {}
    for number in range(plain.shape[1]):
        gap = difference(*(Mean.of_values(counts[:, number].tolist()) for counts in (plain, rem)))
        cases[f"class {number}"] = _case_of_details(gap, rows)
    fewer = int((rem.mean(0) < plain.mean(0)).sum())
    because = f"in {fewer} of {plain.shape[1]} classes by the mean of {len(rem)} seeds"
    return decide_together(cases, plain.shape[1], because)


def eleven_levels_suffice(rows_of: RowsOf) -> Finding:
    """With eleven levels accuracy is within a tenth of a point of the best number of levels."""
    label = "fig:quantization levels"
    cases, words = dict[str, Case](), []
    for name, found in details_of(rows_of(label)).items():
        if found:
            lost = Mean.of_values([_lost_at_eleven(details) for details in found])
            cases[name] = Case(excess(lost.times(-1), -0.1))
            words.append(f"{lost.value:.2f} points below the best for {name}")
    if not cases:
        return Finding("open", "no network has been looked at")
    return decide_together(cases, len(EXPERIMENTS[label].settings), ", ".join(words))


def _lost_at_eleven(details: Details) -> float:
    accuracy, levels = details.series["quantized_accuracy"], details.series["levels"]
    return 100 * float(accuracy.max() - accuracy[levels == 11].item())


def entropy_grows_in_training(rows_of: RowsOf) -> Finding:
    """Along the training with REM entropy and accuracy grow, and the entropy ends low.

    Low means below six tenths of what the network without REM has.
    """
    rows = rows_of("fig:acc_vs_pp")
    found = details_of(rows).get("DR-CapsNet+REM", ())
    kept = [details.series for details in found if len(details.series["epoch"]) > 1]
    plain = pairs_of(rows_of("tab:mnist-pruned-params"), "entropy").get("DR-CapsNet")
    if not kept or plain is None:
        return Finding("open", "no training kept more than one epoch, or there is none without REM")
    first, last = (
        {key: Mean.of_values([float(series[key][at]) for series in kept]) for key in _ALONG_TRAINING}
        for at in (0, -1)
    )
    without = Mean.of_row(plain.plain).times(_LOW)
    effects = {
        "growing entropy": _growth(kept, "entropy"),
        "growing accuracy": _growth(kept, "quantized_accuracy"),
        "a low entropy at the end": difference(without, last["entropy"]),
    }
    because = (
        f"{first['entropy'].value:.2f} bits at {100 * first['quantized_accuracy'].value:.2f} % after the "
        f"first epoch, {last['entropy'].value:.2f} at {100 * last['quantized_accuracy'].value:.2f} % after "
        f"the last, {plain.plain.ours:.2f} without REM"
    )
    cases = {name: _case_of_details(effect, rows) for name, effect in effects.items()}
    return decide_together(cases, len(cases), because)


def _case_of_details(effect: Effect, rows: Rows) -> Case:
    """An effect that was found in the details of the runs behind some rows."""
    return Case(effect._replace(is_short=any(row.budget != "full" for row in rows)))


def _growth(kept: Sequence[Mapping[str, Series]], key: str) -> Effect:
    """How much larger a number is at the end of a training than at its start, run by run."""
    return excess(Mean.of_values([float(series[key][-1] - series[key][0]) for series in kept]), 0)
