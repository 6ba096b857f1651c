"""The claims of the REM chapter about networks without REM and with it, decided by rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from torchcaps.core import metric_of

from ..plan import (
    EXPERIMENTS,
    Case,
    Check,
    Finding,
    Mean,
    RowsOf,
    decide,
    decide_together,
    difference,
    excess,
    gain,
)
from ..records import Row, Rows, by_setting
from .setting import REM, Pair, pairs_of

GAMMA = "gamma-CapsNet, thesis gradient"
_LOSS = 0.2  # points of accuracy that count as kept
KEEPS_ACCURACY = f"REM keeps the accuracy, by our rule within {_LOSS:g} points."
EFFECT = 0.05  # share of a number by which another has to be lower to count
ON_BLACK = ("mnist", "fashion_mnist")  # datasets with a black background, where the object is known
_AsCase = Callable[[Mean, Mean], Case]  # of a network without REM and with it


def thesis_networks(label: str) -> set[str]:
    """The networks of an experiment that the thesis prints figures of."""
    return {setting.network for setting in EXPERIMENTS[label].settings if setting.thesis}


def _in_every_pair(label: str, metric: str, as_case: _AsCase) -> Check:
    """A check of all networks that the thesis has, without REM and with it."""

    def check(rows_of: RowsOf) -> Finding:
        networks, unit = thesis_networks(label), metric_of(metric).unit
        pairs = {name: pair for name, pair in pairs_of(rows_of(label), metric).items() if name in networks}
        cases = {name: as_case(*map(Mean.of_row, pair)) for name, pair in pairs.items()}
        words = (f"{name} {plain.ours:.2f} to {rem.ours:.2f} {unit}" for name, (plain, rem) in pairs.items())
        return decide_together(cases, len(networks), ", ".join(words) or "no network was trained both ways")

    return check


def keeps_accuracy(label: str) -> Check:
    """With REM the quantized accuracy is at most 0.2 points lower, in every pair."""
    return _in_every_pair(
        label, "quantized_accuracy", lambda plain, rem: Case(difference(rem, plain), -_LOSS)
    )


def lowers_entropy(label: str) -> Check:
    """With REM the entropy is lower by at least a twentieth, in every pair."""
    return _in_every_pair(
        label,
        "entropy",
        lambda plain, rem: Case(difference(plain.times(1 - EFFECT), rem)),
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
    cases = {"the sparsity": Case(beyond), "the accuracy": Case(gained, -_LOSS)}
    return decide_together(cases, len(cases), because)


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
        cases, words = dict[str, Case](), []
        for name in (name for name in chosen if name in pairs):
            others = {other: pairs[other] for other in pairs if other in rivals[name]}
            cases |= _lowest(pairs[name], others)
            words += [_both(each, pairs[each]) for each in (name, *others)]
        if not cases:
            return Finding("open", f"{', '.join(chosen)}, or what to compare with, was not trained both ways")
        return decide_together(cases, 2 * sum(map(len, rivals.values())), f"bits: {', '.join(words)}")

    return check


def _lowest(own: Pair, others: Mapping[str, Pair]) -> dict[str, Case]:
    """Whether each of others has a higher entropy, as it is and with REM."""
    return {
        f"{name} {way}": Case(difference(Mean.of_row(row), Mean.of_row(lowest)))
        for name, pair in others.items()
        for way, row, lowest in zip(("as it is", "with REM"), pair, own, strict=True)
    }


def _both(name: str, pair: Pair) -> str:
    return f"{name} {pair.plain.ours:.2f} as it is and {pair.rem.ours:.2f} with REM"


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
    cases, parts = dict[str, Case](), []
    for name, pair in pairs.items():
        least = even[name].rem
        cases |= _beats_both(name, pair, least)
        parts.append(f"{name} {pair.plain.ours:.1f} to {pair.rem.ours:.1f} %, an even map {least.ours:.1f} %")
    return decide_together(cases, 2 * len(ON_BLACK), "; ".join(parts))


def _beats_both(name: str, pair: Pair, even: Row) -> dict[str, Case]:
    plain, rem = map(Mean.of_row, pair)
    return {
        f"{name} against no REM": Case(difference(rem, plain)),
        f"{name} against an even map": Case(gain(pair.rem, even)._replace(is_short=rem.is_short)),
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
    cases = {name: Case(gain(by[0][name], by[1][name])) for name in names}
    because = (
        f"the class falls by {falls[0]:.1f} points without the places that contributions name, by "
        f"{falls[1]:.1f} without those that couplings name, by {falls[2]:.1f} without random ones"
    )
    return decide_together(cases, len(EXPERIMENTS[label].settings), because)
