"""The claims of the REM chapter, decided by rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from torchcaps.core import metric_of

from ..plan import (
    EXPERIMENTS,
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
    gain,
)
from ..records import Details, Row, Rows, Series, by_setting, details_of
from .setting import REM, Pair, pairs_of

GAMMA = "gamma-CapsNet, thesis gradient"
_ALONG_TRAINING = ("entropy", "quantized_accuracy")
_LOSS = 0.2  # points of accuracy that count as kept
KEEPS_ACCURACY = f"REM keeps the accuracy, by our rule within {_LOSS:g} points."
_EFFECT = 0.05  # share of a number by which another has to be lower to count
ON_BLACK = ("mnist", "fashion_mnist")  # datasets with a black background, where the object is known
_LOW = 0.6  # share of another entropy that counts as low
_NEARLY_ALL = 0.95  # share of the couplings
_Judge = Callable[[Mean, Mean], Verdict]  # of a network without REM and with it


def thesis_networks(label: str) -> set[str]:
    """The networks of an experiment that the thesis prints figures of."""
    return {setting.network for setting in EXPERIMENTS[label].settings if setting.thesis}


def _in_every_pair(label: str, metric: str, judge: _Judge) -> Check:
    """A check of all networks that the thesis has, without REM and with it."""

    def check(rows_of: RowsOf) -> Finding:
        networks, unit = thesis_networks(label), metric_of(metric).unit
        pairs = {name: pair for name, pair in pairs_of(rows_of(label), metric).items() if name in networks}
        verdicts = {name: judge(*map(Mean.of_row, pair)) for name, pair in pairs.items()}
        words = (f"{name} {plain.ours:.2f} to {rem.ours:.2f} {unit}" for name, (plain, rem) in pairs.items())
        return decide_together(
            verdicts, len(networks), ", ".join(words) or "no network was trained both ways"
        )

    return check


def keeps_accuracy(label: str) -> Check:
    """With REM the quantized accuracy is at most 0.2 points lower, in every pair."""
    return _in_every_pair(
        label, "quantized_accuracy", lambda plain, rem: decide(difference(rem, plain), at_least=-_LOSS)
    )


def lowers_entropy(label: str) -> Check:
    """With REM the entropy is lower by at least a twentieth, in every pair."""
    return _in_every_pair(
        label,
        "entropy",
        lambda plain, rem: decide(difference(plain, rem), at_least=_EFFECT * plain.value),
    )


def _with_rem(rows: Rows, metric: str) -> Row | None:
    """The row of DR-CapsNet with REM."""
    chosen = ("DR-CapsNet", REM, metric)
    return next((row for row in rows if (row.network, row.variant, row.metric) == chosen), None)


def most_weights_go(rows_of: RowsOf) -> Finding:
    """More than 70 % of the weights of DR-CapsNet are pruned on MNIST, at an accuracy that is kept."""
    rows = rows_of("tab:mnist-pruned-params")
    row = _with_rem(rows, "sparsity")
    accuracy = pairs_of(rows, "quantized_accuracy").get("DR-CapsNet")
    if row is None or accuracy is None:
        return Finding("open", "DR-CapsNet has not been trained both ways")
    beyond = excess(Mean.of_row(row), 70)
    gained = difference(Mean.of_row(accuracy.rem), Mean.of_row(accuracy.plain))
    because = f"sparsity {row.ours:.1f} %, {beyond} points from 70, accuracy {gained} points"
    verdicts = {"the sparsity": decide(beyond), "the accuracy": decide(gained, at_least=-_LOSS)}
    return decide_together(verdicts, len(verdicts), because)


def fewest_trees(label: str, chosen: Mapping[str, str]) -> Check:
    """Some networks of the thesis have the lowest entropy each, as they are and with REM.

    Args:
        label: Of a table.
        chosen: The network, and how the names of all begin that it is compared with.
    """

    def check(rows_of: RowsOf) -> Finding:
        networks = thesis_networks(label)
        rivals = {
            name: [other for other in networks if other != name and other.startswith(start)]
            for name, start in chosen.items()
        }
        pairs = pairs_of(rows_of(label), "entropy")
        verdicts, words = dict[str, Verdict](), []
        for name in (name for name in chosen if name in pairs):
            others = {other: pairs[other] for other in pairs if other in rivals[name]}
            verdicts |= _lowest(pairs[name], others)
            words += [_both(each, pairs[each]) for each in (name, *others)]
        if not verdicts:
            return Finding("open", f"{', '.join(chosen)}, or what to compare with, was not trained both ways")
        return decide_together(verdicts, 2 * sum(map(len, rivals.values())), f"bits: {', '.join(words)}")

    return check


def _lowest(own: Pair, others: Mapping[str, Pair]) -> dict[str, Verdict]:
    """Whether each of others has a higher entropy, as it is and with REM."""
    return {
        f"{name} {way}": decide(difference(Mean.of_row(row), Mean.of_row(lowest)))
        for name, pair in others.items()
        for way, row, lowest in zip(("as it is", "with REM"), pair, own, strict=True)
    }


def _both(name: str, pair: Pair) -> str:
    return f"{name} {pair.plain.ours:.2f} as it is and {pair.rem.ours:.2f} with REM"


def compare(label: str, metric: str, lower: str, higher: str, *, by: float = _EFFECT) -> Check:
    """A metric is lower in one setting than in another, by at least a twentieth or another share."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        if lower not in found or higher not in found:
            return Finding("open", "one of the two has not been looked at")
        first, second, unit = found[lower], found[higher], metric_of(metric).unit
        gap = difference(Mean.of_row(second), Mean.of_row(first))
        because = f"{first.ours:.3g} {unit} ({lower}), {second.ours:.3g} {unit} ({higher}), difference {gap}"
        return Finding(decide(gap, at_least=by * float(second.ours)), because)

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
        verdicts = {
            "an equal share": _decide_details(excess(even, 100 * _NEARLY_ALL), rows),
            "the strong ones": finding.verdict,
        }
        because = f"{even.value:.2f} % an equal share after one epoch; strong: {finding.because}"
        return decide_together(verdicts, len(verdicts), because)

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
    verdicts: dict[str, Verdict] = {}
    for number in range(plain.shape[1]):
        gap = difference(*(Mean.of_values(counts[:, number].tolist()) for counts in (plain, rem)))
        verdicts[f"class {number}"] = _decide_details(gap, rows)
    fewer = int((rem.mean(0) < plain.mean(0)).sum())
    because = f"in {fewer} of {plain.shape[1]} classes by the mean of {len(rem)} seeds"
    return decide_together(verdicts, plain.shape[1], because)


def eleven_levels_suffice(rows_of: RowsOf) -> Finding:
    """With eleven levels accuracy is within a tenth of a point of the best number of levels."""
    label = "fig:quantization levels"
    verdicts, words = dict[str, Verdict](), []
    for name, found in details_of(rows_of(label)).items():
        if found:
            lost = Mean.of_values([_lost_at_eleven(details) for details in found])
            verdicts[name] = decide(excess(lost.times(-1), -0.1))
            words.append(f"{lost.value:.2f} points below the best for {name}")
    if not verdicts:
        return Finding("open", "no network has been looked at")
    return decide_together(verdicts, len(EXPERIMENTS[label].settings), ", ".join(words))


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
    verdicts = {name: _decide_details(effect, rows) for name, effect in effects.items()}
    return decide_together(verdicts, len(verdicts), because)


def _decide_details(effect: Effect, rows: Rows) -> Verdict:
    """Decide an effect that was found in the details of the runs behind some rows."""
    return decide(effect._replace(is_short=any(row.budget != "full" for row in rows)))


def _growth(kept: Sequence[Mapping[str, Series]], key: str) -> Effect:
    """How much larger a number is at the end of a training than at its start, run by run."""
    return excess(Mean.of_values([float(series[key][-1] - series[key][0]) for series in kept]), 0)


def decoder_keeps_trees(rows_of: RowsOf) -> Finding:
    """With the decoder, REM takes less than a tenth of the entropy on MNIST."""
    pair = pairs_of(rows_of("tab:decoder-ent-supp"), "entropy").get("MNIST, DR-CapsNet, thesis weight")
    if pair is None:
        return Finding("open", "the network on MNIST has not been trained both ways with the thesis's weight")
    plain, rem = map(Mean.of_row, pair)
    because = f"{plain.value:.2f} bits without, {rem.value:.2f} with REM"
    return Finding(decide(difference(rem, plain.times(0.9))), because)


def draws_more_than_the_class(rows_of: RowsOf) -> Finding:
    """The decoder on frozen capsules errs by less than half of what the mean image of each class does."""
    rows = rows_of("fig:reconstruction")
    found = _with_rem(rows, "reconstruction_error")
    of_class = _with_rem(rows, "class_mean_error")
    if found is None or of_class is None:
        return Finding("open", "DR-CapsNet+REM has not been looked at")
    because = f"squared error {found.ours:.1f} an image, {of_class.ours:.1f} for the class's mean image"
    return Finding(decide(excess(Mean.of_row(found).times(-1), -of_class.ours / 2)), because)


def looks_at_the_object(rows_of: RowsOf) -> Finding:
    """With REM a larger share of the saliency is on the object, larger also than that of an even map."""
    rows = rows_of("fig:saliency_maps")
    pairs, even = pairs_of(rows, "on_object_share"), pairs_of(rows, "even_map_share")
    if not pairs:
        return Finding("open", "no pair of networks has been looked at")
    verdicts, parts = dict[str, Verdict](), []
    for name, pair in pairs.items():
        least = even[name].rem
        verdicts |= _beats_both(name, pair, least)
        parts.append(f"{name} {pair.plain.ours:.1f} to {pair.rem.ours:.1f} %, an even map {least.ours:.1f} %")
    return decide_together(verdicts, 2 * len(ON_BLACK), "; ".join(parts))


def _beats_both(name: str, pair: Pair, even: Row) -> dict[str, Verdict]:
    plain, rem = map(Mean.of_row, pair)
    return {
        f"{name} against no REM": decide(difference(rem, plain)),
        f"{name} against an even map": decide(gain(pair.rem, even)._replace(is_short=rem.is_short)),
    }


def contributions_matter_more(rows_of: RowsOf) -> Finding:
    """Without the places that contributions name, the class falls more than without those of couplings."""
    label = "fig:saliency_maps"
    rows = rows_of(label)
    by = [by_setting(rows, f"deletion_{name}") for name in ("contribution", "saliency", "random")]
    names = [name for name in by[0] if name in by[1] and name in by[2]]
    if not names:
        return Finding("open", "no network has been looked at in this way")
    falls = [float(np.mean([found[name].ours for name in names])) for found in by]
    verdicts = {name: decide(gain(by[0][name], by[1][name])) for name in names}
    because = (
        f"the class falls by {falls[0]:.1f} points without the places that contributions name, by "
        f"{falls[1]:.1f} without those that couplings name, by {falls[2]:.1f} without random ones"
    )
    return decide_together(verdicts, len(EXPERIMENTS[label].settings), because)
