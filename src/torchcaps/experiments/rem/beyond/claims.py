"""What we do beyond the REM chapter, decided by rows."""

from __future__ import annotations

from statistics import mean

from ...plan import (
    EXPERIMENTS,
    MISSING,
    Case,
    Check,
    Finding,
    Mean,
    RowsOf,
    decide,
    decide_best,
    decide_together,
    difference,
    excess,
    mean_of,
)
from ...records import Row, by_setting

_ENTROPY = "beyond:coupling-entropy"
_GOOD = 99.5  # accuracy on MNIST at which entropies are compared
_NOISE = 0.1  # points by which the interval of a mean that reaches it may lie below
_FEWEST = 1  # decided children of an image; with fewer, its tree says nothing


def half_the_entropy(network: str, thesis_entropy: float) -> Check:
    """Some network has less than half of the thesis's REM entropy, at 99.5 % on MNIST and trees not empty."""

    def check(rows_of: RowsOf) -> Finding:
        rows = [row for row in rows_of(_ENTROPY) if row.network == network]
        entropy, accuracy, decided = (
            by_setting(rows, metric) for metric in ("entropy", "quantized_accuracy", "decided")
        )
        if not decided:
            return MISSING
        planned = _planned(network)
        cases = max(planned, len(decided))
        found = {
            name: _is_low(entropy[name], accuracy[name], decided[name], thesis_entropy, cases)
            for name in decided
        }
        good = [name for name in decided if accuracy[name].ours >= _GOOD and decided[name].ours >= _FEWEST]
        ranked = sorted(found, key=lambda name: (name not in good, entropy[name].ours))
        return decide_best([found[name] for name in ranked], planned - len(decided))

    return check


def _is_low(entropy: Row, accuracy: Row, decided: Row, thesis_entropy: float, cases: int) -> Finding:
    """Whether one of several networks has less than half of an entropy, is good, and its trees not empty."""
    because = (
        f"{entropy.ours:.2f} bits at {accuracy.ours:.2f} % with {decided.ours:.1f} decided children an image "
        f"({entropy.setting}); the thesis has {thesis_entropy:.2f} bits"
    )
    bits, hits, children = map(mean_of, (entropy, accuracy, decided))
    least = _GOOD - _NOISE if hits.value >= _GOOD else _GOOD
    conditions = {
        "the entropy": Case(excess(bits.times(-1), -thesis_entropy / 2, cases=cases)),
        "the accuracy": Case(excess(hits, least, cases=cases)),
        "the decided children": Case(excess(children, _FEWEST, cases=cases)),
    }
    return decide_together(conditions, len(conditions), because)


def _planned(network: str) -> int:
    """The number of ways in which a network is to be trained."""
    return sum(setting.network == network for setting in EXPERIMENTS[_ENTROPY].settings)


def detected_better(than: str, by: str, *, in_same_networks: bool = False) -> Check:
    """The mean AUC over all strange images that both settings saw is higher in one than in another.

    Two measures of the same networks are compared network by network, because they scatter together.
    """

    def check(rows_of: RowsOf) -> Finding:
        rows = [row for row in rows_of("beyond:typicality") if row.setting in (by, than)]
        kinds = [{row.metric for row in rows if row.setting == name} for name in (by, than)]
        first, second = (_areas(rows, name, kinds[0] & kinds[1]) for name in (by, than))
        gains = [first[seed] - second[seed] for seed in first if seed in second]
        if not first or not second or (in_same_networks and not gains):
            return Finding("open", "one of the two has not been looked at")
        budgets = {row.setting: row.budget for row in rows}
        ours = Mean.of_values(list(first.values()), budgets[by])
        other = Mean.of_values(list(second.values()), budgets[than])
        gap = excess(Mean.of_values(gains), 0) if in_same_networks else difference(ours, other)
        because = f"mean AUC {ours.value:.3f} ({by}), {other.value:.3f} ({than}), difference {gap}"
        return Finding(decide(gap), because)

    return check


def _areas(rows: list[Row], name: str, kinds: set[str]) -> dict[int, float]:
    """The mean AUC of a setting over these kinds of images, by the seeds that saw all of them."""
    found: dict[int, list[float]] = {}
    for row in (row for row in rows if row.setting == name and row.metric in kinds):
        for run in row.runs:
            found.setdefault(run.facts.seed, []).append(run.value)
    return {seed: mean(values) for seed, values in found.items() if len(values) == len(kinds)}
