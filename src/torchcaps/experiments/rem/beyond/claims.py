"""What we do beyond the REM chapter, decided by rows."""

from __future__ import annotations

from statistics import mean

from ...plan import (
    Check,
    Finding,
    Mean,
    RowsOf,
    as_ours,
    decide,
    decide_together,
    difference,
    excess,
    mean_of,
)
from ...records import by_setting

_GOOD = 99.5  # accuracy on MNIST at which entropies are compared
_NOISE = 0.1  # points by which the interval of that accuracy may reach below
_FEWEST = 1  # decided children of an image; with fewer, its tree says nothing


def half_the_entropy(network: str, thesis_entropy: float) -> Check:
    """Some network has less than half of the thesis's REM entropy, at 99.5 % on MNIST and trees not empty."""

    def check(rows_of: RowsOf) -> Finding:
        rows = [row for row in rows_of("beyond:coupling-entropy") if row.network == network]
        entropy, accuracy, decided = (
            by_setting(rows, metric) for metric in ("entropy", "quantized_accuracy", "decided")
        )
        good = [name for name in decided if accuracy[name].ours >= _GOOD and decided[name].ours >= _FEWEST]
        if not good:
            return Finding(
                "open", f"none of {len(decided)} has {_GOOD} % and {_FEWEST} decided child an image"
            )
        lowest = min(good, key=lambda name: entropy[name].ours)
        because = (
            f"{entropy[lowest].ours:.2f} bits at {accuracy[lowest].ours:.2f} % with "
            f"{decided[lowest].ours:.1f} decided children an image ({lowest}); the thesis has "
            f"{thesis_entropy:.2f} bits"
        )
        bits, hits, children = (mean_of(rows[lowest]) for rows in (entropy, accuracy, decided))
        verdicts = {
            "the entropy": decide(excess(bits.times(-1), -thesis_entropy / 2)),
            "the accuracy": decide(excess(hits, _GOOD - _NOISE)),
            "the decided children": decide(excess(children, _FEWEST)),
        }
        return as_ours(decide_together(verdicts, len(verdicts), because))

    return check


def detected_better(than: str, by: str) -> Check:
    """The mean AUC over all strange images is higher in one setting than in another."""

    def check(rows_of: RowsOf) -> Finding:
        found: dict[str, dict[int, list[float]]] = {}
        for row in rows_of("beyond:typicality"):
            for run in row.runs:
                found.setdefault(row.setting, {}).setdefault(run.facts.seed, []).append(run.value)
        if by not in found or than not in found:
            return Finding("open", "one of the two has not been looked at")
        ours, other = (Mean.of_values([mean(areas) for areas in found[name].values()]) for name in (by, than))
        gap = difference(ours, other)
        because = f"mean AUC {ours.value:.3f} ({by}), {other.value:.3f} ({than}), difference {gap}"
        return as_ours(Finding(decide(gap), because))

    return check
