"""What the chapter on routing annealing claims, decided by the rows of its three figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from statistics import correlation, median
from typing import NamedTuple

from ..plan import Check, Finding, RowsOf, confirm, go_beyond
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
    fixed_one: float
    fixed_three: float
    annealed: float
    iterations: float  # median over seeds
    is_unfair: bool  # a fixed training used up its epochs, and annealing was given more
    is_unfinished: bool  # annealing used up its epochs before the last number of iterations

    @property
    def gain(self) -> float:
        """Points of accuracy above the better of the fixed ones."""
        return self.annealed - max(self.fixed_one, self.fixed_three)


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
                    fixed_one=one.ours,
                    fixed_three=three.ours,
                    annealed=annealed.ours,
                    iterations=median(run.value for run in chosen[names[2]].runs),
                    is_unfair=min(map(_used_up, (one, three))) < _epochs(annealed),
                    is_unfinished=_used_up(annealed) == _epochs(annealed),
                )
            )
    return sorted(triples, key=lambda triple: triple.parameters)


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


def _fairly(sizes: list[Triple], is_so: bool, because: str) -> Finding:
    """Decide a gain, which stays open where fixed training was given too few epochs; a loss counts anyway."""
    unfair = sum(size.is_unfair for size in sizes)
    if is_so and unfair:
        return Finding("open", f"{because}, but at {unfair} sizes fixed training was given too few epochs")
    return confirm(is_so, because)


def wins(label: str) -> Check:
    """Annealed training is more accurate than both fixed ones at every size."""

    def check(sizes: list[Triple]) -> Finding:
        won = [size for size in sizes if size.gain > 0]
        worst = min(sizes, key=lambda size: size.gain)
        equal = sum(size.gain == 0 for size in sizes)
        because = (
            f"in {len(won)} of {len(sizes)}, equal in {equal}, "
            f"smallest gain {worst.gain:+.2f} points ({worst.name})"
        )
        return _fairly(sizes, len(won) == len(sizes), because)

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
            f"rank correlation of gain and parameters {trend:+.2f}"
        )
        return _fairly(sizes, means[0] > means[1] and trend < 0, because)

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
        return confirm(trend < 0 and small.iterations > large.iterations, because)

    return _about_sizes(label, check)


def one_beats_three(label: str) -> Check:
    """One fixed iteration is more accurate than three where capsules have many dimensions."""

    def check(sizes: list[Triple]) -> Finding:
        wide = [size for size in sizes if size.poses == _POSES[-1]]
        better = [size for size in wide if size.fixed_one > size.fixed_three]
        because = f"in {len(better)} of {len(wide)} sizes"
        return confirm(len(better) == len(wide), because) if wide else Finding("open", because)

    return _about_sizes(label, check)


def largest_finds_three(rows_of: RowsOf) -> Finding:
    """Annealing finds three iterations for the largest network on Fashion-MNIST."""
    largest = [size for size in triples_of(rows_of("fig:fashion")) if size.name == "32 types, 8D and 16D"]
    if not largest:
        return Finding("open", "this network has not been trained in all three ways")
    found = largest[0].iterations
    return confirm(found == 3, f"the median over seeds is {found:g}")


def datasets_differ(rows_of: RowsOf) -> Finding:
    """The number of iterations found depends on the dataset."""
    fashion, cifar = (
        {size.name: size.iterations for size in triples_of(rows_of(label))}
        for label in ("fig:fashion", "fig:cifar10")
    )
    both = sorted(fashion.keys() & cifar.keys())
    if len(both) < _FEWEST_SIZES:
        return Finding("open", f"only {len(both)} sizes have been trained on both")
    other = [name for name in both if fashion[name] != cifar[name]]
    return confirm(len(other) > len(both) / 2, f"it differs for {len(other)} of {len(both)} sizes")


def _fixed_losses(rows: Rows) -> dict[int, Row]:
    """Rows of the loss with fixed iterations, by their number."""
    found = by_setting(rows, "test_loss")
    return {r: found[fixed_name(r)] for r in FIXED if fixed_name(r) in found}


def _annealed_curve(rows: Rows, metric: str) -> MeanCurve:
    """How a metric goes along the annealed training."""
    row = by_setting(rows, metric).get(ANNEALED)
    return (row.curve if row is not None else None) or MeanCurve()


def annealed_loss_falls(rows_of: RowsOf) -> Finding:
    """The test loss is lower at the end of the annealed curve than at its start."""
    curve = _annealed_curve(rows_of("fig:fix_vs_ann"), "test_loss")
    if len(curve.at) < 2:
        return Finding("open", "no annealed training has come beyond one iteration")
    first, last = curve.mean[0], curve.mean[-1]
    because = f"test loss {first:.4f} at {curve.at[0]}, {last:.4f} at {curve.at[-1]} iterations"
    return confirm(last < first, f"{because}, lowest {min(curve.mean):.4f}")


def fixed_loss_grows(rows_of: RowsOf) -> Finding:
    """Trained with the most iterations, the loss is clearly higher than with one."""
    fixed = _fixed_losses(rows_of("fig:fix_vs_ann"))
    if len(fixed) < _FEWEST_SIZES or max(fixed) == 1:
        return Finding("open", f"only {len(fixed)} of {len(FIXED)} numbers of iterations have been trained")
    trend = rank_correlation(list(fixed), [row.ours for row in fixed.values()])
    first, last = fixed[min(fixed)], fixed[max(fixed)]
    noise = (first.spread or 0.0) + (last.spread or 0.0)
    because = (
        f"test loss {first.ours:.4f} with {min(fixed)}, {last.ours:.4f} with {max(fixed)} iterations, "
        f"deviations {noise:.4f} together, rank correlation {trend:+.2f}"
    )
    return confirm(last.ours - first.ours > noise and trend > 0, because)


def annealed_is_above(rows_of: RowsOf) -> Finding:
    """Annealed training is more accurate than fixed training wherever both have been made."""
    rows = rows_of("fig:fix_vs_ann")
    found, curve = by_setting(rows, "test_accuracy"), _annealed_curve(rows, "test_accuracy")
    annealed = dict(zip(curve.at, curve.mean, strict=True))
    both = [r for r in FIXED if r > 1 and r in annealed and fixed_name(r) in found]
    above = [r for r in both if annealed[r] > found[fixed_name(r)].ours]
    because = f"at {len(above)} of {len(both)} numbers of iterations above one"
    return confirm(len(above) == len(both), because) if both else Finding("open", because)


def full_gradient_is_worse(rows_of: RowsOf) -> Finding:
    """With many iterations the loss is clearly higher where gradients flow through all rounds."""
    found, most = by_setting(rows_of("fig:fix_vs_ann"), "test_loss"), FIXED[-1]
    last, full = found.get(fixed_name(most)), found.get(full_name(most))
    if last is None or full is None:
        return Finding("open", "one of the two has not been trained")
    noise = (last.spread or 0.0) + (full.spread or 0.0)
    because = (
        f"test loss {last.ours:.4f} through the last, {full.ours:.4f} through all of {most}, "
        f"deviations {noise:.4f} together"
    )
    return go_beyond(full.ours - last.ours > noise, because)


def rank_correlation(first: Sequence[float | int], second: Sequence[float | int]) -> float:
    """Spearman's, ties at their mean rank; 0 where one of them does not vary."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float | int]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]
