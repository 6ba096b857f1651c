from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from experiments.made_rows import a_row, a_run, measured

from torchcaps.experiments.annealing.couplings import couplings_polarise
from torchcaps.experiments.annealing.curve_claims import (
    annealed_ends_better,
    annealed_is_better,
    fixed_loss_grows,
    full_gradient_is_worse,
)
from torchcaps.experiments.annealing.grid_claims import (
    datasets_differ,
    gains_shrink,
    iterations_shrink,
    largest_finds_three,
    one_beats_three,
    triples_of,
    wins,
)
from torchcaps.experiments.annealing.names import ANNEALED, FIXED, GRID, WAYS, full_name, grid_name
from torchcaps.experiments.annealing.trend import decide_trend, rank_correlation
from torchcaps.experiments.records import Details, MeanCurve, Protocol


def row(setting, metric, value, **more):
    return a_row(setting, metric, value, **{"spread": 0.01, "seeds": 3, **more})


def grid(gain, iterations, sizes=GRID, *, three=-1.0, **more):
    """Rows of a grid where annealing gains and finds what the functions of (types, dimensions) say.

    Three fixed iterations are better than one by `three` points.
    """
    rows = []
    for types, poses in sizes:
        for way in WAYS:
            name, parameters = grid_name(types, poses, way), types * poses[0] * poses[1]
            value = 80.0 + (gain(types, poses[0]) if way == "annealed" else 0) + three * (way == "fixed 3")
            rows.append(row(name, "test_accuracy", value, parameters=parameters, **more))
            if way == "annealed":
                found = iterations(types, poses[0])
                rows.append(row(name, "iterations", found, parameters=parameters, **more | {"spread": 0.0}))
    return lambda label: rows


AS_CLAIMED = grid(lambda types, pose: 10 / (types * pose), lambda types, pose: 10 if types * pose < 64 else 3)
OTHERWISE = grid(lambda types, pose: types * pose - 5, lambda types, pose: 1 + types * pose, three=0.5)
NOISY, TWICE, SINGLE = (
    grid(lambda types, pose: 10 / (types * pose), lambda types, pose: 10 if types * pose < 64 else 3, **more)
    for more in ({"spread": 20.0}, {"seeds": 2}, {"seeds": 1, "spread": None})
)
ABOUT_GRIDS = [wins, gains_shrink, iterations_shrink, one_beats_three]


@pytest.mark.parametrize("claim", ABOUT_GRIDS)
def test_claims_about_grids_are_decided_by_the_rows(claim):
    check = claim("fig:fashion")
    assert check(AS_CLAIMED).verdict == "confirmed"
    assert check(OTHERWISE).verdict == "not confirmed"
    assert check(grid(lambda t, p: 1, lambda t, p: 1, sizes=GRID[:2])).verdict == "open"


@pytest.mark.parametrize("claim", ABOUT_GRIDS)
def test_grids_of_a_shorter_protocol_decide_nothing(claim):
    for rows_of in (AS_CLAIMED, OTHERWISE):
        assert claim("fig:fashion")(in_short(rows_of)).verdict == "open"


def in_short(rows_of):
    """The same rows, of runs of the quick budget."""
    quick = (Protocol(budget="quick", epochs=2),)
    return lambda label: [replace(row, protocols=quick) for row in rows_of(label)]


@pytest.mark.parametrize("claim", ABOUT_GRIDS)
def test_what_seeds_cannot_tell_stays_open(claim):
    assert claim("fig:fashion")(SINGLE).verdict == "open"
    if claim in (wins, one_beats_three):  # the others are about the order of many sizes
        assert claim("fig:fashion")(NOISY).verdict == "open"


def test_a_trend_that_chance_would_give_stays_open():
    assert decide_trend(-0.9, 18, falls=True) == "confirmed"
    assert decide_trend(0.9, 18, falls=True) == "not confirmed"
    assert decide_trend(-0.3, 18, falls=True) == decide_trend(-0.9, 4, falls=True) == "open"


@pytest.mark.parametrize("claim", [wins, gains_shrink])
def test_a_gain_over_training_that_was_cut_short_stays_open(claim):
    def check(rows_of, took, allowed):
        return claim("fig:fashion")(lambda label: with_epochs(rows_of(label), "fixed 1", took, allowed))

    assert check(AS_CLAIMED, 25, 25).verdict == "open"
    assert "at 18 sizes" in check(AS_CLAIMED, 25, 25).because
    assert check(AS_CLAIMED, 25, 30).verdict == check(AS_CLAIMED, 60, 60).verdict == "confirmed"
    assert check(OTHERWISE, 25, 25).verdict == "not confirmed"


def with_epochs(rows, way, took, allowed):
    """Copies of rows where annealing ended by itself after 50 epochs, and this way of training as given."""
    epochs = {"annealed": (50, 80), way: (took, allowed)}

    def copy(row):
        took, allowed = next(
            (pair for name, pair in epochs.items() if row.setting.endswith(name)), (None, None)
        )
        runs = (
            replace(run, facts=replace(run.facts, epochs=took, epochs_allowed=allowed)) for run in row.runs
        )
        return replace(row, runs=tuple(runs))

    return list(map(copy, rows))


@pytest.mark.parametrize("claim", [gains_shrink, iterations_shrink])
def test_searches_that_were_ended_show_no_trend(claim):
    for rows_of in (AS_CLAIMED, OTHERWISE):
        ended = with_epochs(rows_of("fig:fashion"), "annealed", 80, 80)
        assert claim("fig:fashion")(lambda label, ended=ended: ended).verdict == "open"


def test_a_loss_of_a_search_that_was_ended_stays_open():
    ended = with_epochs(OTHERWISE("fig:fashion"), "annealed", 80, 80)
    assert wins("fig:fashion")(lambda label: ended).verdict == "open"


def test_a_search_was_ended_whatever_another_seed_was_allowed():
    rows = with_epochs(AS_CLAIMED("fig:fashion"), "annealed", 80, 80)
    row = next(row for row in rows if row.setting.endswith("annealed") and row.metric == "test_accuracy")
    longer = replace(row.runs[0], facts=replace(row.runs[0].facts, epochs=100, epochs_allowed=200))
    rows[rows.index(row)] = replace(row, runs=(longer, *row.runs[1:]))
    assert all(size.is_unfinished for size in triples_of(rows))


def with_ways(**changes):
    """Rows as claimed, with other fields in those of a way of training."""
    return lambda label: [
        measured(row, **next((more for way, more in changes.items() if row.setting.endswith(way)), {}))
        for row in AS_CLAIMED(label)
    ]


def test_annealing_has_to_be_ahead_of_both_fixed_trainings():
    """Whichever of them has the higher mean."""

    def verdict(one, three):
        found = {"fixed 1": {"ours": 75.0, **one}, "fixed 3": {"ours": 70.0, **three}}
        return wins("fig:fashion")(with_ways(**found)).verdict

    assert verdict({}, {}) == "confirmed"
    assert verdict({}, {"spread": 30.0}) == "open"
    assert verdict({"spread": 30.0}, {}) == "open"
    assert verdict({"ours": 99.0, "spread": 30.0}, {"ours": 98.0}) == "not confirmed"


def test_gains_over_a_training_of_one_seed_show_no_trend():
    def verdict(way):
        rows = [
            replace(row, runs=row.runs[:1], spread=None) if row.setting.endswith(way) else row
            for row in AS_CLAIMED("fig:fashion")
        ]
        return gains_shrink("fig:fashion")(lambda label: rows).verdict

    assert [verdict(way) for way in (*WAYS, "none")] == ["open", "open", "open", "confirmed"]


def test_three_iterations_for_the_largest():
    assert largest_finds_three(AS_CLAIMED).verdict == "confirmed"
    assert largest_finds_three(OTHERWISE).verdict == "not confirmed"
    assert largest_finds_three(SINGLE).verdict == largest_finds_three(TWICE).verdict == "open"
    ended = with_epochs(AS_CLAIMED("fig:fashion"), "annealed", 80, 80)
    assert largest_finds_three(lambda label: ended).verdict == "open"


def test_datasets_are_compared_size_by_size():
    def differing(label):
        return (AS_CLAIMED if label == "fig:fashion" else OTHERWISE)(label)

    assert datasets_differ(differing).verdict == "confirmed"
    assert datasets_differ(AS_CLAIMED).verdict == "not confirmed"
    assert datasets_differ(SINGLE).verdict == datasets_differ(TWICE).verdict == "open"
    ended = with_epochs(differing("fig:cifar10"), "annealed", 80, 80)
    unfinished = {"fig:fashion": AS_CLAIMED("fig:fashion"), "fig:cifar10": ended}
    assert datasets_differ(unfinished.__getitem__).verdict == "open"


def test_searches_of_a_shorter_protocol_decide_nothing():
    short, turned = in_short(AS_CLAIMED), in_short(OTHERWISE)
    assert largest_finds_three(short).verdict == largest_finds_three(turned).verdict == "open"
    assert datasets_differ(short).verdict == "open"
    assert (
        datasets_differ(lambda label: (short if label == "fig:fashion" else turned)(label)).verdict == "open"
    )


def curves(fixed, annealed, spread=0.0, **facts):
    """Rows of the curves: loss at r fixed iterations, and on the annealed curve; accuracy is minus that."""
    rows = []
    for metric, sign in (("test_loss", 1), ("test_accuracy", -1)):
        runs = tuple(a_run(0.0, seed=seed, **facts) for seed in (42, 43, 44))
        rows += [
            measured(row(f"fixed {r}", metric, sign * fixed(r), spread=spread, runs=runs)) for r in FIXED
        ]
        places = tuple(range(1, 51))
        curve = MeanCurve(
            at=places,
            mean=tuple(sign * annealed(r) for r in places),
            spread=(spread,) * 50,
            seeds=(3,) * 50,
        )
        rows.append(row(ANNEALED, metric, 0.0, curve=curve))
    return lambda label: rows


ABOUT_ANNEALED = [
    partial(check, metric)
    for check in (annealed_ends_better, annealed_is_better)
    for metric in ("test_loss", "test_accuracy")
]


def test_claims_about_curves_are_decided_by_the_rows():
    checks = (*ABOUT_ANNEALED, fixed_loss_grows)
    as_claimed = curves(lambda r: 0.1 + 0.01 * r, lambda r: 0.1 - 0.001 * r)
    turned = curves(lambda r: 0.1 - 0.001 * r, lambda r: 0.1 + 0.01 * r)
    for check in checks:
        assert check(as_claimed).verdict == "confirmed"
        assert check(turned).verdict == "not confirmed"
        assert check(in_short(as_claimed)).verdict == check(in_short(turned)).verdict == "open"
        noisy = curves(lambda r: 0.1 + 0.01 * r, lambda r: 0.1 - 0.001 * r, spread=5.0)
        assert check(noisy).verdict == "open"


@pytest.mark.parametrize("check", [*ABOUT_ANNEALED, fixed_loss_grows])
def test_fixed_training_that_was_cut_short_is_no_measure(check):
    """Each added iteration comes with epochs: against training of few epochs annealing can hardly lose."""
    cut = curves(lambda r: 0.1 + 0.01 * r, lambda r: 0.1 - 0.001 * r, epochs=25, epochs_allowed=25)
    assert check(cut).verdict == "open"


@pytest.mark.parametrize("check", ABOUT_ANNEALED)
def test_a_loss_against_training_that_was_cut_short_counts_anyway(check):
    cut = curves(lambda r: 0.1 - 0.001 * r, lambda r: 0.1 + 0.01 * r, epochs=25, epochs_allowed=25)
    assert check(cut).verdict == "not confirmed"


@pytest.mark.parametrize(
    ("number", "rising", "verdict"),
    [
        (3, True, "open"),  # the order is not known
        (3, False, "not confirmed"),  # the ends are, and fall
        (1, False, "open"),
        (50, False, "open"),
    ],
)
def test_a_training_that_was_cut_short_in_between_leaves_the_ends(number, rising, verdict):
    slope = 0.01 if rising else -0.001
    rows = [
        replace(row, runs=tuple(map(cut_short, row.runs))) if row.setting == f"fixed {number}" else row
        for row in curves(lambda r: 0.1 + slope * r, lambda r: 0.1)("")
    ]
    assert fixed_loss_grows(lambda label: rows).verdict == verdict


def cut_short(run):
    return replace(run, facts=replace(run.facts, epochs=25, epochs_allowed=25))


@pytest.mark.parametrize(
    ("metric", "other"), [("test_loss", "test_accuracy"), ("test_accuracy", "test_loss")]
)
@pytest.mark.parametrize("check", [annealed_ends_better, annealed_is_better])
def test_losses_decide_claims_on_loss_and_accuracies_those_on_accuracy(check, metric, other):
    rows = [row for row in curves(lambda r: 0.5, lambda r: 0.1)("") if row.metric == metric]
    assert check(metric, lambda label: rows).verdict == "confirmed"
    assert check(other, lambda label: rows).verdict == "open"


SPLIT = [10.0, 9.9, 9.6, 8.0, 4.0, 2.0, 1.3]  # parents by iterations, of ten classes


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        ((SPLIT, SPLIT), "confirmed"),
        ((SPLIT,), "open"),  # one seed
        ((), "open"),
        (([*SPLIT[:-2], 2.6, 2.5],) * 2, "not confirmed"),  # others do not go to zero
        (([9.0, *SPLIT[1:]],) * 2, "not confirmed"),  # not equal at one iteration
        (([10.0, 5.0, 6.0, 4.0, 3.0, 2.0, 1.3],) * 2, "not confirmed"),  # not falling
        ((SPLIT, [*SPLIT[:-2], 2.6, 2.5]), "open"),
        ((SPLIT, [*SPLIT[:-1], 1.9]), "open"),  # two seeds that scatter, both below two parents
        ((SPLIT, [*SPLIT[:-1], 1.4], SPLIT), "confirmed"),
    ],
)
def test_couplings_polarise_where_every_seed_says_so(seeds, verdict):
    runs = tuple(
        a_run(1.0, Details(series={"parents": np.array(parents), "capsule": np.zeros((7, 10))}), seed=seed)
        for seed, parents in enumerate(seeds)
    )
    rows = [a_row("net", "parents", 1.0, runs=runs)] if runs else []
    assert couplings_polarise(lambda label: rows).verdict == verdict


def test_gradients_through_all_rounds_are_compared_at_the_most_iterations():
    last = row("fixed 50", "test_loss", 0.1)
    for loss, verdict in ((0.5, "confirmed"), (0.05, "not confirmed"), (0.11, "open")):
        full = row(full_name(50), "test_loss", loss)
        assert full_gradient_is_worse(lambda label, full=full: [last, full]).verdict == verdict
    assert full_gradient_is_worse(lambda label: [last]).verdict == "open"


def test_sizes_without_all_three_trainings_are_left_out():
    rows = AS_CLAIMED("fig:fashion")
    assert len(triples_of(rows)) == len(GRID) == 18
    assert len(triples_of(rows[1:])) == 17


def test_rank_correlation_is_spearmans():
    scipy_stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    first, second = [3.0, 1.0, 2.0, 2.0, 9.0], [1.0, 2.0, 2.0, 5.0, 3.0]
    assert rank_correlation(first, second) == pytest.approx(scipy_stats.spearmanr(first, second).statistic)
    assert rank_correlation([1, 1], [1, 2]) == 0
