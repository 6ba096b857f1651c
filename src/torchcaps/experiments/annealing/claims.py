"""What the chapter on routing annealing claims, decided by the rows of its three figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from statistics import correlation, median
from typing import NamedTuple

from ..plan import (
    Check,
    Effect,
    Finding,
    Mean,
    RowsOf,
    Verdict,
    as_ours,
    decide,
    decide_together,
    difference,
)
from ..records import MeanCurve, Row, Rows, by_setting

FIXED = (1, 2, 3, 5, 10, 20, 50)
ANNEALED = "annealed to 50"
FIXED_WAYS = {"fixed 1": 1, "fixed 3": 3}
WAYS = (*FIXED_WAYS, "annealed")
_POSES = ((2, 4), (4, 8), (8, 16))
_FIRST = ((1, (2, 4)), (32, (8, 16)), (8, (4, 8)), (32, (2, 4)), (1, (8, 16)), (4, (2, 4)), (16, (8, 16)))
GRID = tuple(  # sizes spread over the range come first, in case the time runs out
    dict.fromkeys((*_FIRST, *((types, poses) for poses in _POSES for types in (1, 2, 4, 8, 16, 32))))
)
_FEWEST_SIZES = 3  # that a claim about sizes is decided on
_CLEAR = 2.0  # a rank correlation times the root of its cases less one, beyond chance at 95 %


def fixed_name(iterations: int) -> str:
    """The setting of fixed training on MNIST."""
    return f"fixed {iterations}"


def full_name(iterations: int) -> str:
    """The setting of fixed training in which gradients flow through all rounds."""
    return f"{fixed_name(iterations)}, gradient through all rounds"


def size_name(types: int, poses: tuple[int, int]) -> str:
    """One network size of a grid."""
    return f"{types} types, {poses[0]}D and {poses[1]}D"


def grid_name(types: int, poses: tuple[int, int], way: str) -> str:
    """The setting of one network size and way of training."""
    return f"{size_name(types, poses)}, {way}"


class Triple(NamedTuple):
    """One network size for which all three ways of training are there."""

    name: str
    poses: tuple[int, int]
    parameters: int
    fixed_one: Mean
    fixed_three: Mean
    annealed: Mean
    iterations: float  # median over seeds
    found: tuple[float, ...]  # iterations of each seed
    is_unfair: bool  # a fixed training used up its epochs, and annealing was given more
    is_unfinished: bool  # annealing used up its epochs before the last number of iterations

    @property
    def gain(self) -> float:
        """Points of accuracy above the better of the fixed ones."""
        return self.effect.size

    @property
    def effect(self) -> Effect:
        """The gain with its interval."""
        return difference(self.annealed, max(self.fixed_one, self.fixed_three))


def triples_of(rows: Rows) -> list[Triple]:
    """The complete triples of a grid, smallest networks first."""
    accuracies, chosen = by_setting(rows, "test_accuracy"), by_setting(rows, "iterations")
    triples = []
    for types, poses in GRID:
        names = [grid_name(types, poses, way) for way in WAYS]
        if all(name in accuracies for name in names):
            one, three, annealed = (accuracies[name] for name in names)
            triples.append(
                Triple(
                    name=size_name(types, poses),
                    poses=poses,
                    parameters=annealed.runs[0].facts.parameters,
                    fixed_one=_mean(one),
                    fixed_three=_mean(three),
                    annealed=_mean(annealed),
                    iterations=median(run.value for run in chosen[names[2]].runs),
                    found=tuple(run.value for run in chosen[names[2]].runs),
                    is_unfair=min(map(_used_up, (one, three))) < _epochs(annealed),
                    is_unfinished=_used_up(annealed) == _epochs(annealed),
                )
            )
    return sorted(triples, key=lambda triple: triple.parameters)


def _mean(row: Row) -> Mean:
    """The mean of a row; whether its runs were too short is asked by what they used up."""
    return Mean.of_row(row, any_budget=True)


def _epochs(row: Row) -> float:
    """The most epochs that a run behind this row took."""
    return float(max(run.facts.epochs or 0 for run in row.runs))


def _used_up(row: Row) -> float:
    """The fewest epochs after which a run had to end before it had converged; infinite where none had to."""
    ended = [run.facts.epochs or 0 for run in row.runs if run.facts.is_used_up]
    return float(min(ended, default=inf))


def _about_sizes(label: str, check: Callable[[list[Triple]], Finding]) -> Check:
    def checked(rows_of: RowsOf) -> Finding:
        sizes = triples_of(rows_of(label))
        if len(sizes) < _FEWEST_SIZES:
            return Finding("open", f"only {len(sizes)} of {len(GRID)} sizes have all three trainings")
        return check(sizes)

    return checked


def _fairly(sizes: list[Triple], finding: Finding) -> Finding:
    """A gain stays open where fixed training was given too few epochs; a loss counts anyway."""
    unfair = sum(size.is_unfair for size in sizes)
    if finding.verdict == "confirmed" and unfair:
        return Finding(
            "open", f"{finding.because}, but at {unfair} sizes fixed training was given too few epochs"
        )
    return finding


def _of_seeds(sizes: list[Triple], finding: Finding) -> Finding:
    """A trend over sizes stays open where one of them has a single seed."""
    single = sum(len(size.found) < 2 for size in sizes)
    return Finding("open", f"{finding.because}, {single} of them with one seed") if single else finding


def decide_trend(trend: float, cases: int, *, falls: bool) -> Verdict:
    """Whether a rank correlation over so many cases is clearly negative, or positive, or neither."""
    strength = trend * (cases - 1) ** 0.5 * (-1 if falls else 1)
    return "confirmed" if strength >= _CLEAR else "not confirmed" if strength <= -_CLEAR else "open"


def wins(label: str) -> Check:
    """Annealed training is more accurate than both fixed ones at every size."""

    def check(sizes: list[Triple]) -> Finding:
        won = [size for size in sizes if size.gain > 0]
        worst = min(sizes, key=lambda size: size.gain)
        because = (
            f"by the mean in {len(won)} of {len(sizes)}, smallest gain {worst.effect} points ({worst.name})"
        )
        verdicts = {size.name: decide(size.effect) for size in sizes}
        return _fairly(sizes, decide_together(verdicts, len(GRID), because))

    return _about_sizes(label, check)


def gains_shrink(label: str) -> Check:
    """The gain falls with the number of parameters."""

    def check(sizes: list[Triple]) -> Finding:
        half = len(sizes) // 2
        small, large = ([size.gain for size in part] for part in (sizes[:half], sizes[-half:]))
        means = sum(small) / half, sum(large) / half
        trend = rank_correlation([size.parameters for size in sizes], [size.gain for size in sizes])
        because = (
            f"{means[0]:+.2f} points in the smaller half, {means[1]:+.2f} in the larger, "
            f"rank correlation of gain and parameters {trend:+.2f} over {len(sizes)} sizes"
        )
        return _fairly(sizes, _of_seeds(sizes, Finding(decide_trend(trend, len(sizes), falls=True), because)))

    return _about_sizes(label, check)


def iterations_shrink(label: str) -> Check:
    """The number of iterations found falls with the number of parameters."""

    def check(sizes: list[Triple]) -> Finding:
        trend = rank_correlation([size.parameters for size in sizes], [size.iterations for size in sizes])
        small, large = sizes[0], sizes[-1]
        because = (
            f"{small.iterations:g} for the smallest, {large.iterations:g} for the largest, "
            f"rank correlation {trend:+.2f} over {len(sizes)} sizes"
        )
        unfinished = sum(size.is_unfinished for size in sizes)
        if unfinished:
            return Finding("open", f"{because}, but at {unfinished} the epochs ended before the search did")
        return _of_seeds(sizes, Finding(decide_trend(trend, len(sizes), falls=True), because))

    return _about_sizes(label, check)


def one_beats_three(label: str) -> Check:
    """One fixed iteration is more accurate than three where capsules have many dimensions."""

    def check(sizes: list[Triple]) -> Finding:
        wide = [size for size in sizes if size.poses == _POSES[-1]]
        better = [size for size in wide if size.fixed_one.value > size.fixed_three.value]
        verdicts = {size.name: decide(difference(size.fixed_one, size.fixed_three)) for size in wide}
        planned = sum(poses == _POSES[-1] for _, poses in GRID)
        return decide_together(verdicts, planned, f"by the mean in {len(better)} of {len(wide)} sizes")

    return _about_sizes(label, check)


def largest_finds_three(rows_of: RowsOf) -> Finding:
    """Annealing finds three iterations for the largest network on Fashion-MNIST."""
    largest = [size for size in triples_of(rows_of("fig:fashion")) if size.name == "32 types, 8D and 16D"]
    if not largest:
        return Finding("open", "this network has not been trained in all three ways")
    found = sorted(largest[0].found)
    because = f"{', '.join(f'{number:g}' for number in found)} in {len(found)} seeds"
    if largest[0].is_unfinished:
        return Finding("open", f"{because}, but the epochs ended before the search did")
    if len(found) < 2:
        return Finding("open", because)
    if set(found) == {3}:
        return Finding("confirmed", because)
    return Finding("open" if found[0] <= 3 <= found[-1] else "not confirmed", because)


def datasets_differ(rows_of: RowsOf) -> Finding:
    """The number of iterations found depends on the dataset, by searches that came to their end.

    It differs where no seed of one dataset found as few as some seed of the other did as many.
    """
    fashion, cifar = (
        {
            size.name: size.found
            for size in triples_of(rows_of(label))
            if not size.is_unfinished and len(size.found) > 1
        }
        for label in ("fig:fashion", "fig:cifar10")
    )
    both = sorted(fashion.keys() & cifar.keys())
    if len(both) < _FEWEST_SIZES:
        return Finding("open", f"only {len(both)} sizes have two finished searches on both")
    apart = [
        name
        for name in both
        if min(fashion[name]) > max(cifar[name]) or min(cifar[name]) > max(fashion[name])
    ]
    same = [name for name in both if sorted(fashion[name]) == sorted(cifar[name])]
    because = f"it differs for {len(apart)} of {len(both)} sizes whatever the seed, is equal for {len(same)}"
    if len(apart) > len(both) / 2:
        return Finding("confirmed", because)
    return Finding("not confirmed" if len(same) > len(both) / 2 else "open", because)


def _fixed_losses(rows: Rows) -> dict[int, Row]:
    """Rows of the loss with fixed iterations, by their number."""
    found = by_setting(rows, "test_loss")
    return {r: found[fixed_name(r)] for r in FIXED if fixed_name(r) in found}


def _annealed_curve(rows: Rows, metric: str) -> MeanCurve:
    """How a metric goes along the annealed training."""
    row = by_setting(rows, metric).get(ANNEALED)
    return (row.curve if row is not None else None) or MeanCurve()


def annealed_loss_falls(rows_of: RowsOf) -> Finding:
    """The annealed loss ends lower than training with one iteration does that was let run to its own end.

    The start of the annealed curve would be no measure: more iterations come with more epochs.
    """
    rows = rows_of("fig:fix_vs_ann")
    curve, one = _annealed_curve(rows, "test_loss"), _fixed_losses(rows).get(1)
    if len(curve.at) < 2 or one is None:
        return Finding("open", "annealed training has not come beyond one iteration, or fixed 1 is missing")
    last = _points(curve)[curve.at[-1]]
    gap = difference(_mean(one), last)
    because = (
        f"test loss {last.value:.4f} at {curve.at[-1]} iterations, {one.ours:.4f} with one alone, "
        f"difference {gap}"
    )
    if _used_up(one) < inf:
        return Finding("open", f"{because}, but training with one alone was cut short")
    return Finding(decide(gap), because)


def _points(curve: MeanCurve) -> dict[int, Mean]:
    """The means of a curve by iterations."""
    return {
        at: Mean(float(mean), None if spread is None else float(spread), seeds)
        for at, mean, spread, seeds in zip(curve.at, curve.mean, curve.spread, curve.seeds, strict=True)
    }


def fixed_loss_grows(rows_of: RowsOf) -> Finding:
    """Trained with the most iterations, the loss is clearly higher than with one."""
    fixed = _fixed_losses(rows_of("fig:fix_vs_ann"))
    if len(fixed) < _FEWEST_SIZES or max(fixed) == 1:
        return Finding("open", f"only {len(fixed)} of {len(FIXED)} numbers of iterations have been trained")
    trend = rank_correlation(list(fixed), [row.ours for row in fixed.values()])
    first, last = fixed[min(fixed)], fixed[max(fixed)]
    gap = difference(_mean(last), _mean(first))
    because = (
        f"test loss {first.ours:.4f} with {min(fixed)}, {last.ours:.4f} with {max(fixed)} iterations, "
        f"difference {gap}, rank correlation {trend:+.2f}"
    )
    cut = sum(_used_up(row) < inf for row in fixed.values())
    if cut:
        return Finding("open", f"{because}, but {cut} of {len(fixed)} trainings were cut short")
    verdicts = {"the ends": decide(gap), "the order": decide_trend(trend, len(fixed), falls=False)}
    return decide_together(verdicts, len(verdicts), because)


def annealed_is_above(rows_of: RowsOf) -> Finding:
    """Annealed training is more accurate than fixed training wherever both have been made."""
    rows = rows_of("fig:fix_vs_ann")
    found, annealed = by_setting(rows, "test_accuracy"), _points(_annealed_curve(rows, "test_accuracy"))
    both = [r for r in FIXED if r > 1 and r in annealed and fixed_name(r) in found]
    effects = {str(r): difference(annealed[r], _mean(found[fixed_name(r)])) for r in both}
    above = sum(effect.size > 0 for effect in effects.values())
    because = f"by the mean at {above} of {len(both)} numbers of iterations above one"
    verdicts = {f"{r} iterations": decide(effect) for r, effect in effects.items()}
    finding = decide_together(verdicts, len(FIXED) - 1, because)
    cut = [r for r in both if _used_up(found[fixed_name(r)]) < inf]
    if finding.verdict == "confirmed" and cut:
        return Finding("open", f"{because}, but fixed training was cut short at {len(cut)} of them")
    return finding


def full_gradient_is_worse(rows_of: RowsOf) -> Finding:
    """With many iterations the loss is clearly higher where gradients flow through all rounds."""
    found, most = by_setting(rows_of("fig:fix_vs_ann"), "test_loss"), FIXED[-1]
    last, full = found.get(fixed_name(most)), found.get(full_name(most))
    if last is None or full is None:
        return Finding("open", "one of the two has not been trained")
    gap = difference(_mean(full), _mean(last))
    because = (
        f"test loss {last.ours:.4f} through the last, {full.ours:.4f} through all of {most}, difference {gap}"
    )
    return as_ours(Finding(decide(gap), because))


def rank_correlation(first: Sequence[float | int], second: Sequence[float | int]) -> float:
    """Spearman's, ties at their mean rank; 0 where one of them does not vary."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float | int]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]
