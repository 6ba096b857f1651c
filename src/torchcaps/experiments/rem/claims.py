"""The claims of the REM chapter, decided by rows."""

from __future__ import annotations

from statistics import mean

import numpy as np

from torchcaps.core.metric import metric_of

from ..plan import Check, Finding, RowsOf, confirm
from ..records import Details, Row, Rows, by_setting, details_of
from .setting import REM, pairs_of

_ALONG_TRAINING = ("entropy", "quantized_accuracy")
_LOSS = 0.2  # points of accuracy that count as kept


def _all_of(exceptions: list[str], what: str, count: int, planned: int) -> Finding:
    """Confirmed where all are there and none is an exception; exceptions are named."""
    because = f"{what} in {count - len(exceptions)} of {count} that were trained both ways"
    if exceptions:
        return Finding("not confirmed", f"{because}, not in {', '.join(exceptions)}")
    return Finding("open", f"{because}, of {planned}") if count < planned else Finding("confirmed", because)


def keeps_accuracy(label: str, planned: int) -> Check:
    """With REM the quantized accuracy is at most 0.2 points or two deviations lower, in every pair."""

    def check(rows_of: RowsOf) -> Finding:
        pairs = pairs_of(rows_of(label), "quantized_accuracy")
        lost = [
            f"{name} ({rem.ours - plain.ours:+.2f} points)"
            for name, (plain, rem) in pairs.items()
            if plain.ours - rem.ours > max(_LOSS, 2 * (plain.spread or 0.0))
        ]
        return _all_of(lost, "kept", len(pairs), planned)

    return check


def lowers_entropy(label: str, planned: int) -> Check:
    """With REM the entropy is lower, in every pair."""

    def check(rows_of: RowsOf) -> Finding:
        pairs = pairs_of(rows_of(label), "entropy")
        not_lower = [
            f"{name} ({plain.ours:.2f} to {rem.ours:.2f} bits)"
            for name, (plain, rem) in pairs.items()
            if rem.ours >= plain.ours
        ]
        return _all_of(not_lower, "lower", len(pairs), planned)

    return check


def _with_rem(rows: Rows, network: str, metric: str) -> Row | None:
    """The row of a network with REM."""
    chosen = (network, REM, metric)
    return next((row for row in rows if (row.network, row.variant, row.metric) == chosen), None)


def most_weights_go(rows_of: RowsOf) -> Finding:
    """More than 70 % of the weights of DR-CapsNet are pruned on MNIST."""
    row = _with_rem(rows_of("tab:mnist-pruned-params"), "DR-CapsNet", "sparsity")
    if row is None:
        return Finding("open", "DR-CapsNet+REM has not been trained")
    return confirm(row.ours > 70, f"sparsity {row.ours:.1f} %")


def gamma_has_fewest_trees(rows_of: RowsOf) -> Finding:
    """gamma-CapsNet has the lowest entropy, as it is and with REM."""
    pairs = pairs_of(rows_of("tab:mnist-pruned-params"), "entropy")
    gamma = pairs.pop("gamma-CapsNet", None)
    if gamma is None or not pairs:
        return Finding("open", "gamma-CapsNet, or what to compare it with, has not been trained both ways")
    plain = min(pair.plain.ours for pair in pairs.values())
    rem = min(pair.rem.ours for pair in pairs.values())
    because = (
        f"{gamma.plain.ours:.2f} bits as it is and {gamma.rem.ours:.2f} with REM, the lowest of "
        f"{len(pairs)} others {plain:.2f} and {rem:.2f}"
    )
    return confirm(gamma.plain.ours < plain and gamma.rem.ours < rem, because)


def compare(label: str, metric: str, lower: str, higher: str) -> Check:
    """A metric is lower in one setting than in another."""

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), metric)
        if lower not in found or higher not in found:
            return Finding("open", "one of the two has not been looked at")
        values, unit = (found[lower].ours, found[higher].ours), metric_of(metric).unit
        because = f"{values[0]:.3g} {unit} ({lower}), {values[1]:.3g} {unit} ({higher})"
        return confirm(values[0] < values[1], because)

    return check


def fewer_trees_in_every_class(rows_of: RowsOf) -> Finding:
    """The mean number of trees over seeds is lower with REM in every class."""
    found = details_of(rows_of("fig:mnist-dictionary-test"))
    plain, rem = (
        np.array([details.series["keys"] for details in found.get(name, ())])
        for name in ("DR-CapsNet+Q", "DR-CapsNet+REM")
    )
    if not len(plain) or not len(rem):
        return Finding("open", "one of the two has not been looked at")
    fewer = int((rem.mean(0) < plain.mean(0)).sum())
    return confirm(fewer == plain.shape[1], f"in {fewer} of {plain.shape[1]} classes")


def eleven_levels_suffice(rows_of: RowsOf) -> Finding:
    """With eleven levels accuracy is within a tenth of a point of the best number of levels."""
    lost = {}
    for name, found in details_of(rows_of("fig:quantization levels")).items():
        if found:
            lost[name] = mean(_lost_at_eleven(details) for details in found)
    if not lost:
        return Finding("open", "no network has been looked at")
    because = ", ".join(f"{gap:.2f} points below the best for {name}" for name, gap in lost.items())
    return confirm(max(lost.values()) <= 0.1, because)


def _lost_at_eleven(details: Details) -> float:
    accuracy, levels = details.series["quantized_accuracy"], details.series["levels"]
    return 100 * float(accuracy.max() - accuracy[levels == 11].item())


def entropy_grows_in_training(rows_of: RowsOf) -> Finding:
    """Along the training with REM, entropy and accuracy start low and end higher."""
    found = details_of(rows_of("fig:acc_vs_pp")).get("DR-CapsNet+REM", ())
    kept = [details.series for details in found if len(details.series["epoch"]) > 1]
    if not kept:
        return Finding("open", "no training kept more than one epoch")
    first, last = (
        {key: float(np.mean([series[key][at] for series in kept])) for key in _ALONG_TRAINING}
        for at in (0, -1)
    )
    because = (
        f"{first['entropy']:.2f} bits at {100 * first['quantized_accuracy']:.2f} % after the first epoch, "
        f"{last['entropy']:.2f} at {100 * last['quantized_accuracy']:.2f} % after the last"
    )
    return confirm(all(first[key] < last[key] for key in first), because)


def decoder_keeps_trees(rows_of: RowsOf) -> Finding:
    """With the decoder, REM takes less than a tenth of the entropy on MNIST."""
    pair = pairs_of(rows_of("tab:decoder-ent-supp"), "entropy").get("MNIST, DR-CapsNet")
    if pair is None:
        return Finding("open", "the network on MNIST has not been trained both ways")
    plain, rem = pair.plain.ours, pair.rem.ours
    return confirm(rem > 0.9 * plain, f"{plain:.2f} bits without, {rem:.2f} with REM")


def draws_more_than_the_class(rows_of: RowsOf) -> Finding:
    """The decoder on frozen capsules errs by less than half of what the mean image of each class does."""
    rows = rows_of("fig:reconstruction")
    found = _with_rem(rows, "DR-CapsNet", "reconstruction_error")
    of_class = _with_rem(rows, "DR-CapsNet", "class_mean_error")
    if found is None or of_class is None:
        return Finding("open", "DR-CapsNet+REM has not been looked at")
    because = f"squared error {found.ours:.1f} an image, {of_class.ours:.1f} for the class's mean image"
    return confirm(found.ours < of_class.ours / 2, because)


def looks_at_the_object(rows_of: RowsOf) -> Finding:
    """With REM a larger share of the saliency is on the object, larger also than that of an even map."""
    rows = rows_of("fig:saliency_maps")
    pairs, even = pairs_of(rows, "on_object_share"), pairs_of(rows, "even_map_share")
    if not pairs:
        return Finding("open", "no pair of networks has been looked at")
    parts, is_so = [], True
    for name, (plain, rem) in pairs.items():
        least = even[name].rem.ours
        is_so &= rem.ours > max(plain.ours, least)
        parts.append(f"{name} {plain.ours:.1f} to {rem.ours:.1f} %, an even map {least:.1f} %")
    return confirm(is_so, "; ".join(parts))


def contributions_matter_more(rows_of: RowsOf) -> Finding:
    """Without the places that contributions name, the class falls more than without those of couplings."""
    rows = rows_of("fig:saliency_maps")
    by = [by_setting(rows, f"deletion_{name}") for name in ("contribution", "saliency", "random")]
    names = [name for name in by[0] if name in by[1] and name in by[2]]
    if not names:
        return Finding("open", "no network has been looked at in this way")
    falls = [mean(found[name].ours for name in names) for found in by]
    less = [name for name in names if by[0][name].ours <= by[1][name].ours]
    because = (
        f"the class falls by {falls[0]:.1f} points without the places that contributions name, by "
        f"{falls[1]:.1f} without those that couplings name, by {falls[2]:.1f} without random ones; more by "
        f"contributions than by couplings in {len(names) - len(less)} of {len(names)} networks"
    )
    return confirm(not less, f"{because}, not in {'; '.join(less)}" if less else because)
