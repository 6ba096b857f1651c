"""What the REM chapter claims, and what we do beyond it, decided by rows."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from ..plan import Finding, Rows, RowsOf

Check = Callable[[RowsOf], Finding]
_LOSS = 0.2  # points of accuracy that count as kept
_GOOD = 99.5  # accuracy on MNIST at which entropies are compared
_FEWEST = 1  # decided children of an image; a tree with less says nothing


def _by_setting(rows: Rows, metric: str) -> dict[str, dict[str, Any]]:
    return {row["setting"]: row for row in rows if row["metric"] == metric and row["ours"] is not None}


def pairs_of(rows: Rows, metric: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Rows of each network as it is and with REM, where both are there."""
    found = _by_setting(rows, metric)
    names = [name.removesuffix("+Q") for name in found if name.endswith("+Q")]
    return {name: (found[f"{name}+Q"], found[f"{name}+REM"]) for name in names if f"{name}+REM" in found}


def _decide(is_so: bool, because: str) -> Finding:
    return Finding("confirmed" if is_so else "not confirmed", because)


def _all_of(exceptions: list[str], what: str, count: int, planned: int) -> Finding:
    """Confirmed where all are there and nothing is wrong; the exceptions are named."""
    because = f"{what} in {count - len(exceptions)} of {count} that were trained both ways"
    if exceptions:
        return Finding("not confirmed", f"{because}, not in {', '.join(exceptions)}")
    return Finding("open", f"{because}, of {planned}") if count < planned else Finding("confirmed", because)


def keeps_accuracy(label: str, planned: int) -> Check:
    """With REM the quantized accuracy is at most 0.2 points or two deviations lower, in every pair."""

    def check(rows_of: RowsOf) -> Finding:
        pairs = pairs_of(rows_of(label), "quantized_accuracy")
        lost = [
            f"{name} ({rem['ours'] - plain['ours']:+.2f} points)"
            for name, (plain, rem) in pairs.items()
            if plain["ours"] - rem["ours"] > max(_LOSS, 2 * (plain["spread"] or 0.0))
        ]
        return _all_of(lost, "kept", len(pairs), planned)

    return check


def lowers_entropy(label: str, planned: int) -> Check:
    """With REM the entropy is lower, in every pair."""

    def check(rows_of: RowsOf) -> Finding:
        pairs = pairs_of(rows_of(label), "entropy")
        not_lower = [
            f"{name} ({plain['ours']:.2f} to {rem['ours']:.2f} bits)"
            for name, (plain, rem) in pairs.items()
            if rem["ours"] >= plain["ours"]
        ]
        return _all_of(not_lower, "lower", len(pairs), planned)

    return check


def most_weights_go(rows_of: RowsOf) -> Finding:
    """More than 70 % of the weights of DR-CapsNet are pruned on MNIST."""
    row = _by_setting(rows_of("tab:mnist-pruned-params"), "sparsity").get("DR-CapsNet+REM")
    if row is None:
        return Finding("open", "DR-CapsNet+REM has not been trained")
    return _decide(row["ours"] > 70, f"sparsity {row['ours']:.1f} %")


def gamma_has_fewest_trees(rows_of: RowsOf) -> Finding:
    """gamma-CapsNet has the lowest entropy, as it is and with REM."""
    pairs = pairs_of(rows_of("tab:mnist-pruned-params"), "entropy")
    gamma = pairs.pop("gamma-CapsNet", None)
    if gamma is None or not pairs:
        return Finding("open", "gamma-CapsNet, or what to compare it with, has not been trained both ways")
    lowest = [min(pair[way]["ours"] for pair in pairs.values()) for way in (0, 1)]
    because = (
        f"{gamma[0]['ours']:.2f} bits as it is and {gamma[1]['ours']:.2f} with REM, the lowest of "
        f"{len(pairs)} others {lowest[0]:.2f} and {lowest[1]:.2f}"
    )
    return _decide(gamma[0]["ours"] < lowest[0] and gamma[1]["ours"] < lowest[1], because)


def compare(label: str, metric: str, lower: str, higher: str) -> Check:
    """A metric is lower in one setting than in another."""

    def check(rows_of: RowsOf) -> Finding:
        found = _by_setting(rows_of(label), metric)
        if lower not in found or higher not in found:
            return Finding("open", "one of the two has not been looked at")
        values = found[lower]["ours"], found[higher]["ours"]
        unit = "bits" if metric == "entropy" else "%"
        because = f"{values[0]:.3g} {unit} ({lower}), {values[1]:.3g} {unit} ({higher})"
        return _decide(values[0] < values[1], because)

    return check


def _curves(rows: Rows, setting: str) -> list[dict[str, Any]]:
    found = [row["runs"] for row in rows if row["setting"] == setting][:1]  # the first carries the curves
    return [run["curve"] for runs in found for run in runs if "curve" in run]


def fewer_trees_in_every_class(rows_of: RowsOf) -> Finding:
    """The mean number of trees over seeds is lower with REM in every class."""
    rows = rows_of("fig:mnist-dictionary-test")
    plain, rem = (
        [mean(counts) for counts in zip(*(curve["keys"] for curve in _curves(rows, name)), strict=True)]
        for name in ("DR-CapsNet+Q", "DR-CapsNet+REM")
    )
    if not plain or not rem:
        return Finding("open", "one of the two has not been looked at")
    fewer = sum(with_rem < without for without, with_rem in zip(plain, rem, strict=True))
    return _decide(fewer == len(plain), f"in {fewer} of {len(plain)} classes")


def eleven_levels_suffice(rows_of: RowsOf) -> Finding:
    """With eleven levels accuracy is within a tenth of a point of the best number of levels."""
    rows, lost = rows_of("fig:quantization levels"), {}
    for name in ("DR-CapsNet+Q", "DR-CapsNet+REM"):
        gaps = [
            100 * (max(curve["quantized_accuracy"]) - curve["quantized_accuracy"][curve["levels"].index(11)])
            for curve in _curves(rows, name)
        ]
        if gaps:
            lost[name] = mean(gaps)
    if not lost:
        return Finding("open", "no network has been looked at")
    because = ", ".join(f"{gap:.2f} points below the best for {name}" for name, gap in lost.items())
    return _decide(max(lost.values()) <= 0.1, because)


def entropy_grows_in_training(rows_of: RowsOf) -> Finding:
    """Along the training with REM, entropy and accuracy start low and end higher."""
    curves = _curves(rows_of("fig:acc_vs_pp"), "DR-CapsNet+REM")
    curves = [curve for curve in curves if len(curve["epoch"]) > 1]
    if not curves:
        return Finding("open", "no training kept more than one epoch")
    first, last = (
        {key: mean(curve[key][at] for curve in curves) for key in ("entropy", "quantized_accuracy")}
        for at in (0, -1)
    )
    because = (
        f"{first['entropy']:.2f} bits at {100 * first['quantized_accuracy']:.2f} % after the first epoch, "
        f"{last['entropy']:.2f} at {100 * last['quantized_accuracy']:.2f} % after the last"
    )
    return _decide(all(first[key] < last[key] for key in first), because)


def decoder_keeps_trees(rows_of: RowsOf) -> Finding:
    """With the decoder, REM takes less than a tenth of the entropy on MNIST."""
    pair = pairs_of(rows_of("tab:decoder-ent-supp"), "entropy").get("MNIST, DR-CapsNet")
    if pair is None:
        return Finding("open", "the network on MNIST has not been trained both ways")
    plain, rem = (row["ours"] for row in pair)
    return _decide(rem > 0.9 * plain, f"{plain:.2f} bits without, {rem:.2f} with REM")


def draws_more_than_the_class(rows_of: RowsOf) -> Finding:
    """The decoder on frozen capsules errs by less than half of what the mean image of each class does."""
    rows = rows_of("fig:reconstruction")
    found = _by_setting(rows, "reconstruction_error").get("DR-CapsNet+REM")
    of_class = _by_setting(rows, "class_mean_error").get("DR-CapsNet+REM")
    if found is None or of_class is None:
        return Finding("open", "DR-CapsNet+REM has not been looked at")
    because = f"squared error {found['ours']:.1f} an image, {of_class['ours']:.1f} for the class's mean image"
    return _decide(found["ours"] < of_class["ours"] / 2, because)


def looks_at_the_object(rows_of: RowsOf) -> Finding:
    """With REM a larger share of the saliency is on the object, larger also than that of an even map."""
    rows = rows_of("fig:saliency_maps")
    pairs, even = pairs_of(rows, "on_object_share"), _by_setting(rows, "even_map_share")
    if not pairs:
        return Finding("open", "no pair of networks has been looked at")
    parts, is_so = [], True
    for name, (plain, rem) in pairs.items():
        least = even[f"{name}+REM"]["ours"]
        is_so &= rem["ours"] > max(plain["ours"], least)
        parts.append(f"{name} {plain['ours']:.1f} to {rem['ours']:.1f} %, an even map {least:.1f} %")
    return _decide(is_so, "; ".join(parts))


def contributions_matter_more(rows_of: RowsOf) -> Finding:
    """Blanking what contributions name costs the class more than what couplings name, in every network."""
    rows = rows_of("fig:saliency_maps")
    by = [_by_setting(rows, f"deletion_{name}") for name in ("contribution", "saliency", "random")]
    names = [name for name in by[0] if name in by[1] and name in by[2]]
    if not names:
        return Finding("open", "no network has been looked at in this way")
    falls = [mean(found[name]["ours"] for name in names) for found in by]
    less = [name for name in names if by[0][name]["ours"] <= by[1][name]["ours"]]
    because = (
        f"the class falls by {falls[0]:.1f} points without the places that contributions name, by "
        f"{falls[1]:.1f} without those that couplings name, by {falls[2]:.1f} without random ones; more by "
        f"contributions than by couplings in {len(names) - len(less)} of {len(names)} networks"
    )
    return _decide(not less, f"{because}, not in {'; '.join(less)}" if less else because)


def half_the_entropy(prefix: str, thesis_entropy: float) -> Check:
    """Some network has less than half of the thesis's REM entropy, at 99.5 % on MNIST and trees not empty."""

    def check(rows_of: RowsOf) -> Finding:
        rows = [row for row in rows_of("beyond:coupling-entropy") if row["setting"].startswith(prefix)]
        entropy, accuracy, decided = (
            _by_setting(rows, metric) for metric in ("entropy", "quantized_accuracy", "decided")
        )
        good = [
            name for name in decided if accuracy[name]["ours"] >= _GOOD and decided[name]["ours"] >= _FEWEST
        ]
        if not good:
            return Finding(
                "open", f"none of {len(decided)} has {_GOOD} % and {_FEWEST} decided child an image"
            )
        lowest = min(good, key=lambda name: entropy[name]["ours"])
        because = (
            f"{entropy[lowest]['ours']:.2f} bits at {accuracy[lowest]['ours']:.2f} % with "
            f"{decided[lowest]['ours']:.1f} decided children an image ({lowest}); the thesis has "
            f"{thesis_entropy:.2f} bits"
        )
        is_half = entropy[lowest]["ours"] < thesis_entropy / 2
        return Finding("beyond" if is_half else "not confirmed", because)

    return check


def better_told(than: str, by: str) -> Check:
    """The mean AUC over all strange images is higher in one setting than in another."""

    def check(rows_of: RowsOf) -> Finding:
        rows = rows_of("beyond:typicality")
        means = [
            mean(values) if (values := [row["ours"] for row in rows if row["setting"] == name]) else None
            for name in (by, than)
        ]
        if means[0] is None or means[1] is None:
            return Finding("open", "one of the two has not been looked at")
        return _decide(means[0] > means[1], f"mean AUC {means[0]:.3f} ({by}), {means[1]:.3f} ({than})")

    return check
