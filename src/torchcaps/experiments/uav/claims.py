"""What the chapter on flights claims, and what goes beyond it, decided by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError, counted

from ..plan import (
    MISSING,
    Case,
    Check,
    Finding,
    Mean,
    RowsOf,
    Verdict,
    case_of_rows,
    decide_each,
    decide_together,
    difference,
    excess,
)
from ..records import Details, Rows, by_setting, details_of
from .anova import Sample, analyse

CHAPTER = "LSVL: Large-scale season-invariant visual localization for UAVs"
TABLE, FIGURE = "tab:lsl-time_to_convergence_and_error", "fig:lsl-errorplots"
STORAGE, TERRAIN, ROUTING = "beyond:uav-storage", "beyond:uav-terrain", "beyond:uav-routing"
STEPS, CALIBRATION, SENTINEL = "beyond:uav-steps", "beyond:uav-calibration", "beyond:uav-sentinel"
HEADS = {"capsules": "Caps", "fcn": "FCN"}
SIZES = (8, 16, 32, 128)
LIKELIHOODS = ("bayesian", "linear")
BASELINES = ("abBRIEF, bayesian", "abBRIEF, linear", "BRM, bayesian", "BRM, linear", "odometry alone")
_SIGNIFICANT = 0.05
_LEAST = 1e-300  # probability; smaller ones become zero in float64
_UPDATES, _MEAN_UPDATES = "updates to convergence", "updates_to_convergence"


def name_of(head: str, size: int, likelihood: str) -> str:
    """The setting of a network with a likelihood."""
    return f"{HEADS[head]}, D={size}, {likelihood}"


def _networks() -> Iterator[tuple[str, int]]:
    return ((head, size) for head in HEADS for size in SIZES)


def bayesian_is_faster(rows_of: RowsOf) -> Finding:
    """The same flights converge sooner with the Bayesian than with the linear likelihood.

    Both look at the same map with the same network, so any budget decides. A flight that does not converge
    counts with all its updates, fewer than it would have needed.
    """
    rows = rows_of(TABLE)
    effects = {}
    for head, size in _networks():
        saved = _saved(rows, *(name_of(head, size, likelihood) for likelihood in LIKELIHOODS))
        if saved:
            effects[f"{HEADS[head]}, D={size}"] = excess(Mean.of_values(saved), 0)
    title = "updates saved (a flight that does not converge counts as long as it was flown)"
    return decide_each(effects, len(HEADS) * len(SIZES), title) if effects else MISSING


def _saved(rows: Rows, ours: str, other: str) -> list[float]:
    """Updates that a flight saves in one setting against another: the mean over the flights of each seed.

    The flights of a seed share a network and scatter together: one by one they would count as more evidence.
    """
    first, second = (_of_seeds(rows, name) for name in (ours, other))
    return [float((_times(second[seed]) - _times(first[seed])).mean()) for seed in first if seed in second]


def _of_seeds(rows: Rows, name: str) -> dict[int, Details]:
    """Details of the runs of a setting, by their seeds; its first row carries them."""
    row = next((row for row in rows if row.setting == name), None)
    return {run.facts.seed: run.details for run in row.runs if run.details} if row is not None else {}


def _times(details: Details) -> NDArray[np.float64]:
    """Updates to convergence of each flight, and its length where it does not converge."""
    times = np.asarray(details.series[_UPDATES], np.float64)
    return np.where(times < 0, len(details.series["error median"]), times)


def matters(quantity: str, effect: str) -> Check:
    """Whether the analysis of variance over flights finds an effect of a factor, or of two together.

    Flights of a seed share a network and scatter together, so an effect also has to show over the means of
    the seeds. It is open before every network has flown with two seeds and the thesis's protocol.
    """

    def check(rows_of: RowsOf) -> Finding:
        rows = rows_of(TABLE)
        try:
            found, over_seeds = (
                analyse(list(_samples(rows, quantity, of_seeds=of_seeds))) for of_seeds in (False, True)
            )
        except UserError as error:
            return Finding("open", str(error))
        if effect not in found:
            return MISSING
        because = f"p {_say(found[effect])} over flights that converged, type II"
        names = [name_of(*network, likelihood) for network in _networks() for likelihood in LIKELIHOODS]
        few = [name for name in names if len(_of_seeds(rows, name)) < 2]
        if few:
            return Finding("open", f"{because}; {counted(len(few), 'network')} without two seeds")
        if any(row.budget != "full" for row in rows):
            return Finding("open", because)
        if found[effect] >= _SIGNIFICANT:
            return Finding("not confirmed", because)
        p = over_seeds.get(effect, 1.0)
        verdict: Verdict = "confirmed" if p < _SIGNIFICANT else "open"
        return Finding(verdict, f"{because}, p {_say(p)} over the means of seeds")

    return check


def _say(p: float) -> str:
    return f"= {p:.2g}" if p > _LEAST else f"< {_LEAST:g}"


def _samples(rows: Rows, quantity: str, *, of_seeds: bool) -> Iterator[Sample]:
    """Each converged flight of the networks, or with `of_seeds` the mean over those of each seed."""
    details = details_of(rows)
    for (head, size), likelihood in product(_networks(), LIKELIHOODS):
        for run in details.get(name_of(head, size, likelihood), ()):
            values = [float(value) for value in run.series[quantity] if value >= 0]
            some = [mean(values)] if of_seeds and values else values
            yield from (Sample(value, size, head, likelihood) for value in some)


def finds_more(label: str, ours: Sequence[str], others: Sequence[str], *, any_budget: bool = True) -> Check:
    """Whether each of some settings finds more flights than each of others, over seeds.

    Without `any_budget` runs of less than the thesis's protocol leave it open.
    """

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), "found_share")
        pairs = [(one, two) for one in ours for two in others if one in found and two in found]
        if not pairs:
            return MISSING
        cases = {
            f"{one} over {two}": Case(
                difference(*(Mean.of_row(found[name], any_budget=any_budget) for name in (one, two)))
            )
            for one, two in pairs
        }
        names = dict.fromkeys(name for pair in pairs for name in pair)
        words = "; ".join(f"{name} {found[name].ours:.1f} %" for name in names)
        return decide_together(cases, len(ours) * len(others), f"flights found: {words}")

    return check


def fewer_updates(label: str, ours: str, other: str, *, late: float = 0.0, any_budget: bool = True) -> Check:
    """Whether flights converge after fewer updates in one setting than in another, over seeds.

    With `late`, after at most so many more. `any_budget` as in `finds_more`.
    """

    def check(rows_of: RowsOf) -> Finding:
        found = by_setting(rows_of(label), _MEAN_UPDATES)
        if ours not in found or other not in found:
            return MISSING
        effect = difference(*(Mean.of_row(found[name], any_budget=any_budget) for name in (other, ours)))
        words = f"{ours} {found[ours].ours:.1f}, {other} {found[other].ours:.1f} updates, difference {effect}"
        case = case_of_rows(effect, found[ours], found[other], at_least=-late)
        finding = decide_together({ours: case}, 1, words)
        return _of_all_flights(finding, rows_of(label), ours, other)

    return check


def _of_all_flights(finding: Finding, rows: Rows, ours: str, other: str) -> Finding:
    """Mean updates are those of flights that converge.

    They say nothing for a setting in which fewer do, and nothing against one in which more do.
    """
    shares = by_setting(rows, "converged_share")
    if not {ours, other} <= shares.keys():
        return finding
    more = shares[ours].ours - shares[other].ours
    if finding.verdict == "confirmed" and more < 0:
        return Finding("open", f"{finding.because}, but fewer flights converge")
    if finding.verdict == "not confirmed" and more > 0:
        return Finding("open", f"{finding.because}, but more flights converge")
    return finding


def holds_the_truth(label: str, names: Sequence[str]) -> Check:
    """Whether the truth lies in the 95 % region in more than 95 % of the updates after convergence.

    It is a property of the filter with a map, whatever the training: any budget decides, over seeds.
    """

    def check(rows_of: RowsOf) -> Finding:
        rows = rows_of(label)
        means = {name: Mean.of_values(inside) for name in names if (inside := _inside(rows, name))}
        if not means:
            return MISSING
        words = ", ".join(f"{name} {100 * mean.value:.0f} %" for name, mean in means.items())
        cases = {name: Case(excess(mean, 0.95)) for name, mean in means.items()}
        return decide_together(cases, len(names), f"inside: {words}")

    return check


def sooner(label: str, ours: str, other: str) -> Check:
    """Whether the same flights converge sooner in one setting than in another, over seeds.

    Both look with the same network, so any budget decides.
    """

    def check(rows_of: RowsOf) -> Finding:
        saved = _saved(rows_of(label), ours, other)
        if not saved:
            return MISSING
        effect = excess(Mean.of_values(saved), 0)
        return decide_together({ours: Case(effect)}, 1, f"updates saved by {ours}: {effect}")

    return check


def _inside(rows: Rows, name: str) -> list[float]:
    """The mean share over the flights of each seed that converged."""
    shares = (details.series["inside 95"] for details in _of_seeds(rows, name).values())
    return [float(share[share >= 0].mean()) for share in shares if (share >= 0).any()]
