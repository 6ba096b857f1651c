"""What the chapter on routing annealing claims of networks of all sizes, decided by rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from statistics import median
from typing import NamedTuple

from torchcaps.core import Number

from ..plan import (
    Case,
    Check,
    Effect,
    Finding,
    Mean,
    RowsOf,
    Verdict,
    decide_together,
    difference,
    mean_of,
    on_rows,
)
from ..records import Row, Rows, by_setting
from .names import FIXED_WAYS, GRID, POSES, WAYS, grid_name, size_name
from .trend import decide_trend, rank_correlation

_FEWEST_SIZES = 3  # that a claim about sizes is decided on
_FEWEST_SEARCHES = 3  # of a size: two whole numbers are often equal by chance


class Triple(NamedTuple):
    """One network size for which all three ways of training are there."""

    name: str
    poses: tuple[int, int]
    parameters: int
    fixed_one: Mean
    fixed_three: Mean
    annealed: Mean
    found: tuple[Number, ...]  # iterations of each seed
    is_unfair: bool  # a fixed training used up its epochs, and annealing was given more
    is_unfinished: bool  # annealing used up its epochs before the last number of iterations

    @property
    def iterations(self) -> Number:
        """The median over seeds of those found."""
        return median(self.found)

    @property
    def gain(self) -> float:
        """Points of accuracy above the better of the fixed ones."""
        return self.effect.size

    @property
    def effect(self) -> Effect:
        """The gain with its interval."""
        return min(self.effects, key=lambda effect: effect.size)

    @property
    def effects(self) -> tuple[Effect, Effect]:
        """Points of accuracy above one and above three fixed iterations."""
        return difference(self.annealed, self.fixed_one), difference(self.annealed, self.fixed_three)

    @property
    def seeds(self) -> int:
        """The fewest of the three trainings."""
        return min(mean.seeds for mean in (self.fixed_one, self.fixed_three, self.annealed))


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
                    fixed_one=mean_of(one),
                    fixed_three=mean_of(three),
                    annealed=mean_of(annealed),
                    found=tuple(run.value for run in chosen[names[2]].runs),
                    is_unfair=min(map(used_up, (one, three))) < _epochs(annealed),
                    is_unfinished=used_up(annealed) < inf,
                )
            )
    return sorted(triples, key=lambda triple: triple.parameters)


def _epochs(row: Row) -> float:
    """The most epochs that a run behind this row took."""
    return float(max(run.facts.epochs or 0 for run in row.runs))


def used_up(row: Row) -> float:
    """The fewest epochs after which a run had to end before it had converged; infinite where none had to."""
    ended = [run.facts.epochs or 0 for run in row.runs if run.facts.is_used_up]
    return float(min(ended, default=inf))


def _about_sizes(check: Callable[[list[Triple]], Finding]) -> Callable[[str], Check]:
    """A check of one grid, by its label; it is open before enough sizes have all three trainings.

    So it is with less than the thesis's protocol: iterations are found by patience.
    """

    def checked(rows: Rows) -> Finding:
        sizes = triples_of(rows)
        if len(sizes) < _FEWEST_SIZES:
            return Finding("open", f"only {len(sizes)} of {len(GRID)} sizes have all three trainings")
        return _of_protocol(check(sizes), rows)

    return partial(on_rows, rule=checked)


def _of_protocol(finding: Finding, rows: Rows) -> Finding:
    """The same finding, open where a run behind the rows had less than the thesis's protocol."""
    return finding._replace(verdict="open") if any(row.budget != "full" for row in rows) else finding


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
    single = sum(size.seeds < 2 for size in sizes)
    return Finding("open", f"{finding.because}, {single} of them with one seed") if single else finding


def _of_searches(sizes: list[Triple], finding: Finding) -> Finding:
    """A trend over sizes stays open where a search was ended, or a size has a single seed."""
    unfinished = sum(size.is_unfinished for size in sizes)
    if unfinished:
        return Finding(
            "open", f"{finding.because}, but at {unfinished} the epochs ended before the search did"
        )
    return _of_seeds(sizes, finding)


@_about_sizes
def wins(sizes: list[Triple]) -> Finding:
    """Annealed training is more accurate than both fixed ones at every size."""
    won = [size for size in sizes if size.gain > 0]
    worst = min(sizes, key=lambda size: size.gain)
    because = f"by the mean in {len(won)} of {len(sizes)}, smallest gain {worst.effect} points ({worst.name})"
    cases = {
        f"{size.name} against {way}": Case(effect, is_excused=size.is_unfinished)
        for size in sizes
        for way, effect in zip(FIXED_WAYS, size.effects, strict=True)
    }
    return _fairly(sizes, decide_together(cases, len(FIXED_WAYS) * len(GRID), because))


@_about_sizes
def gains_shrink(sizes: list[Triple]) -> Finding:
    """The gain falls with the number of parameters."""
    half = len(sizes) // 2
    small, large = ([size.gain for size in part] for part in (sizes[:half], sizes[-half:]))
    means = sum(small) / half, sum(large) / half
    trend = rank_correlation([size.parameters for size in sizes], [size.gain for size in sizes])
    because = (
        f"{means[0]:+.2f} points in the smaller half, {means[1]:+.2f} in the larger, "
        f"rank correlation of gain and parameters {trend:+.2f} over {len(sizes)} sizes"
    )
    verdict = decide_trend(trend, len(sizes), falls=True)
    return _fairly(sizes, _of_searches(sizes, Finding(verdict, because)))


@_about_sizes
def iterations_shrink(sizes: list[Triple]) -> Finding:
    """The number of iterations found falls with the number of parameters."""
    trend = rank_correlation([size.parameters for size in sizes], [size.iterations for size in sizes])
    small, large = sizes[0], sizes[-1]
    because = (
        f"{small.iterations:g} for the smallest, {large.iterations:g} for the largest, "
        f"rank correlation {trend:+.2f} over {len(sizes)} sizes"
    )
    return _of_searches(sizes, Finding(decide_trend(trend, len(sizes), falls=True), because))


@_about_sizes
def one_beats_three(sizes: list[Triple]) -> Finding:
    """One fixed iteration is more accurate than three where capsules have many dimensions."""
    wide = [size for size in sizes if size.poses == POSES[-1]]
    better = [size for size in wide if size.fixed_one.value > size.fixed_three.value]
    cases = {size.name: Case(difference(size.fixed_one, size.fixed_three)) for size in wide}
    planned = sum(poses == POSES[-1] for _, poses in GRID)
    return decide_together(cases, planned, f"by the mean in {len(better)} of {len(wide)} sizes")


def largest_finds_three(rows_of: RowsOf) -> Finding:
    """Annealing finds three iterations for the largest network on Fashion-MNIST."""
    rows = rows_of("fig:fashion")
    largest = [size for size in triples_of(rows) if size.name == "32 types, 8D and 16D"]
    if not largest:
        return Finding("open", "this network has not been trained in all three ways")
    found = sorted(largest[0].found)
    because = f"{', '.join(f'{number:g}' for number in found)} in {len(found)} seeds"
    if largest[0].is_unfinished:
        return Finding("open", f"{because}, but the epochs ended before the search did")
    if len(found) < _FEWEST_SEARCHES:
        return Finding("open", because)
    is_around = found[0] <= 3 <= found[-1]
    verdict: Verdict = "confirmed" if set(found) == {3} else "open" if is_around else "not confirmed"
    return _of_protocol(Finding(verdict, because), rows)


def datasets_differ(rows_of: RowsOf) -> Finding:
    """The number of iterations found depends on the dataset, by searches that came to their end.

    It differs for a size where every seed on one dataset found more of them than any seed on the other.
    """
    grids = [rows_of(label) for label in ("fig:fashion", "fig:cifar10")]
    fashion, cifar = (
        {
            size.name: size.found
            for size in triples_of(rows)
            if not size.is_unfinished and len(size.found) >= _FEWEST_SEARCHES
        }
        for rows in grids
    )
    both = sorted(fashion.keys() & cifar.keys())
    if len(both) < _FEWEST_SIZES:
        return Finding("open", f"only {len(both)} sizes have three finished searches on both")
    apart = [
        name
        for name in both
        if min(fashion[name]) > max(cifar[name]) or min(cifar[name]) > max(fashion[name])
    ]
    same = [name for name in both if sorted(fashion[name]) == sorted(cifar[name])]
    because = f"it differs for {len(apart)} of {len(both)} sizes whatever the seed, is equal for {len(same)}"
    half = len(both) / 2
    verdict: Verdict = "confirmed" if len(apart) > half else "not confirmed" if len(same) > half else "open"
    return _of_protocol(Finding(verdict, because), [row for rows in grids for row in rows])
