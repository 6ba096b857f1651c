import math
from statistics import mean

import pytest
from experiments.made_rows import a_row, a_run, seeds_row

from torchcaps.experiments.plan import (
    Case,
    Effect,
    Finding,
    Mean,
    decide,
    decide_best,
    decide_together,
    difference,
    excess,
    gain,
)
from torchcaps.experiments.plan.evidence import student_quantile
from torchcaps.experiments.records import Protocol


def test_the_interval_of_a_difference_is_welchs():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    first, second = [3.1, 2.9, 3.4], [2.0, 2.2]
    low, high = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    effect = difference(Mean.of_values(first), Mean.of_values(second))
    assert effect.size - effect.margin == pytest.approx(low)
    assert effect.size + effect.margin == pytest.approx(high)


def test_seeds_that_agree_do_not_vouch_for_those_that_scatter():
    still, wild = Mean(0.0, 0.0, 5), Mean(1.0, 1.0, 5)
    assert difference(wild, still) == excess(wild, 0)  # as if the other one were known
    assert decide(difference(wild, still)) == decide(difference(still, wild)) == "open"
    assert difference(wild._replace(spread=0.0), still) == Effect(1.0, 0.0)


def test_a_deviation_that_a_row_has_rounded_to_zero_still_counts():
    values = [0.00001, 0.00003, 0.00002]
    runs = tuple(a_run(value, seed=seed) for seed, value in enumerate(values))
    row = a_row("x", "test_loss", 0.0, spread=0.0, runs=runs)
    assert Mean.of_row(row) == pytest.approx(Mean.of_values(values, "full"))
    assert decide(difference(Mean.of_row(row), Mean.of_values([0.0, 0.00001, 0.00002]))) == "open"


def test_a_figure_of_as_few_seeds_scatters_as_ours_do():
    ours, known = Mean(2.0, 1.0, 5), excess(Mean(2.0, 1.0, 5), 0)
    assert excess(ours, 0, over_seeds=5).margin == pytest.approx(known.margin * math.sqrt(2))
    assert excess(ours, 0, over_seeds=10**9).margin == pytest.approx(known.margin)


def test_of_many_settings_one_is_ahead_by_chance_and_the_interval_allows_for_it():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    ahead, behind = Mean(2.0, 1.0, 5), Mean(0.0, 1.0, 5)
    alone, of_nine = difference(ahead, behind), difference(ahead, behind, cases=9)
    assert (decide(alone), decide(of_nine)) == ("confirmed", "open")
    assert of_nine.margin == pytest.approx(stats.t.ppf(1 - 0.025 / 9, 8) * math.sqrt(2 / 5))
    assert excess(ahead, 0, cases=9).margin == pytest.approx(stats.t.ppf(1 - 0.025 / 9, 4) / math.sqrt(5))


def test_the_interval_of_one_mean_is_students():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    values = [71.0, 74.0, 73.0]
    low, high = stats.ttest_1samp(values, 70).confidence_interval(0.95)
    effect = excess(Mean.of_values(values), 70)
    assert (effect.size - effect.margin, effect.size + effect.margin) == pytest.approx(
        (low - 70, high - 70), rel=1e-3
    )


def test_a_single_seed_on_either_side_gives_no_interval():
    alone, several = Mean.of_values([9.0]), Mean.of_values([1.0, 1.1, 0.9])
    assert difference(alone, several) == Effect(8.0, math.inf)
    assert difference(several, alone) == Effect(-8.0, math.inf)
    assert decide(difference(alone, several)) == "open"


def test_a_short_protocol_on_either_side_leaves_a_difference_open():
    long, short = Mean(9.0, 0.1, 3), Mean(1.0, 0.1, 3, is_short=True)
    assert difference(long, short).is_short
    assert difference(short, long).is_short
    assert not difference(long, long).is_short


def test_runs_of_two_budgets_are_not_compared_even_where_any_budget_will_do():
    full, quick = (
        Mean.of_row(seeds_row("x", "entropy", 9.0, budget=budget), any_budget=True)
        for budget in ("full", "quick")
    )
    for first, second in ((full, quick), (quick, full)):
        assert decide(difference(first, second._replace(value=1.0))) == "open"
    for alike in (full, quick):
        assert decide(difference(alike, alike._replace(value=1.0))) == "confirmed"
    unknown = Mean.of_values([1.0, 1.1, 0.9])
    assert decide(difference(quick, unknown)) == "confirmed"
    assert decide(difference(quick.times(2), Mean.of_values([1.0, 1.1], "full"))) == "open"


def test_a_mean_in_another_unit_scatters_as_much_whatever_the_sign():
    values = [71.0, 74.0, 73.0]
    turned = excess(Mean.of_values(values).times(-1), -70)
    plain = excess(Mean.of_values(values), 70)
    assert (turned.size, turned.margin) == pytest.approx((-plain.size, plain.margin))
    assert decide(turned) == "open"
    assert Mean.of_values(values).times(-2) == pytest.approx(Mean.of_values([-2 * value for value in values]))


def rows_of_runs(first, second, metrics=("tree_precision", "even_tree_precision")):
    """Two metrics of the same runs."""
    return [
        a_row("x", metric, 100 * mean(values), spread=1.0, runs=tuple(map(seeded, range(3), values)))
        for metric, values in zip(metrics, (first, second), strict=True)
    ]


def seeded(seed, value):
    return a_run(value, seed=seed)


def test_two_metrics_of_the_same_runs_are_compared_run_by_run():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    first, second = [0.30, 0.50, 0.72], [0.28, 0.49, 0.69]
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    effect = gain(*rows_of_runs(first, second))
    assert effect.size - effect.margin == pytest.approx(100 * low, rel=1e-3)
    assert effect.size + effect.margin == pytest.approx(100 * high, rel=1e-3)
    opposed = gain(*rows_of_runs([0.3, 0.4, 0.5], [0.5, 0.4, 0.3]))  # their spreads add up
    assert opposed.margin == pytest.approx(100 * 4.303 * 0.2 / math.sqrt(3), rel=1e-3)


def test_equal_metrics_are_no_gain_however_the_runs_scatter():
    rows = rows_of_runs([0.1, 0.5, 0.9], [0.1, 0.5, 0.9])
    assert gain(*rows) == Effect(0.0, 0.0, freedom=2)
    assert decide(gain(*rows)) == "not confirmed"
    rounded = rows_of_runs([0.1 + 0.2, 0.5, 0.9], [0.3, 0.5, 0.9])
    assert gain(*rounded) == Effect(0.0, 0.0, freedom=2)


def test_metrics_of_other_runs_and_of_one_run_decide_nothing():
    apart = a_row("x", "tree_precision", 90.0, runs=(a_run(0.9, seed=7), a_run(0.9, seed=8)))
    other = rows_of_runs([0.1, 0.1, 0.1], [0.1, 0.1, 0.1])[1]
    assert gain(apart, other) == Effect(80.0, math.inf)
    single = [a_row("x", metric, 90.0) for metric in ("tree_precision", "even_tree_precision")]
    assert gain(*single).margin == math.inf


def test_quantiles_are_students():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    for freedom in (1, 1.3, 2, 2.27, 3, 4, 5, 10, 11, 50, 1001):
        for cases in (1, 7):
            expected = stats.t.ppf(1 - 0.025 / cases, freedom)
            assert student_quantile(freedom, cases) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("effect", "verdict"),
    [
        (Effect(1.0, 0.5), "confirmed"),
        (Effect(-1.0, 0.5), "not confirmed"),
        (Effect(0.3, 0.5), "open"),
        (Effect(-0.3, 0.5), "open"),
        (Effect(5.0, math.inf), "open"),
        (Effect(-5.0, math.inf), "open"),
        (Effect(1.0, 0.5, is_short=True), "open"),
        (Effect(-1.0, 0.5, is_short=True), "open"),
        (Effect(0.0, 0.0), "not confirmed"),
    ],
)
def test_an_interval_decides_both_ways_or_not_at_all(effect, verdict):
    assert decide(effect) == verdict


def test_the_noisier_the_seeds_the_less_is_decided():
    means = [
        Mean.of_row(a_row("x", "entropy", value, seeds=3, spread=spread))
        for value, spread in ((9.0, 0.1), (4.0, 0.1), (9.0, 9.0))
    ]
    assert decide(difference(means[0], means[1])) == "confirmed"
    assert decide(difference(means[2], means[1])) == "open"


def test_a_row_of_a_smaller_budget_is_short_unless_any_will_do():
    row = a_row("x", "entropy", 9.0, protocols=(Protocol(budget="quick", epochs=2),))
    assert Mean.of_row(row).is_short
    assert not Mean.of_row(row, any_budget=True).is_short


def test_one_case_against_it_decides_and_all_have_to_be_for_it():
    together = {"a": "confirmed", "b": "confirmed"}
    assert decide_together(together, 2, "x").verdict == "confirmed"
    assert decide_together(together, 3, "x").verdict == "open"
    assert decide_together({**together, "c": "open"}, 3, "x").verdict == "open"
    assert decide_together({**together, "c": "not confirmed"}, 4, "x").verdict == "not confirmed"
    assert decide_together({}, 0, "x").verdict == "open"
    more_than_planned = decide_together({**together, "c": "open"}, 2, "x")
    assert more_than_planned.because == "x; shown in 2 of 3"


def test_of_many_cases_one_is_against_it_by_chance():
    against = Case(Effect(-1.0, 0.6, freedom=4))
    others = {f"case {number}": Case(Effect(1.0, 0.5)) for number in range(17)}
    assert decide_together({"alone": against}, 1, "x").verdict == "not confirmed"
    assert decide_together({"one of many": against, **others}, 18, "x").verdict == "open"
    clearly = Case(Effect(-1.0, 0.2, freedom=4))
    assert decide_together({"one of many": clearly, **others}, 18, "x").verdict == "not confirmed"
    assert decide_together(others, 17, "x").verdict == "confirmed"  # what all of them show needs no more
    several = {f"{number} of many": against for number in range(9)}  # nine are not against it by chance
    found = decide_together({**others, **several}, 26, "x")
    assert found.verdict == "not confirmed"
    assert found.because == f"x; not in {', '.join(several)}"
    excused = clearly._replace(is_excused=True)
    assert decide_together({"one of many": excused, **others}, 18, "x").verdict == "open"


def test_an_interval_of_all_cases_is_that_of_each_at_a_smaller_error():
    stats = pytest.importorskip("scipy.stats", reason="the oracle is scipy")
    effect = excess(Mean(-1.0, 0.5, 4), 0)
    error = 0.5 / math.sqrt(4)
    for cases in (1, 2, 36):
        expected = stats.t.ppf(1 - 0.025 / cases, 3) * error
        assert effect.margin_of(cases) == pytest.approx(expected, rel=1e-4)
    assert Effect(1.0, math.inf).margin_of(5) == math.inf
    assert Effect(1.0, 0.0).margin_of(5) == 0.0


@pytest.mark.parametrize(
    ("best", "others", "missing", "verdict"),
    [
        ("confirmed", ["not confirmed"], 3, "confirmed"),
        ("open", ["not confirmed"], 0, "open"),
        ("open", ["not confirmed", "confirmed"], 3, "confirmed"),  # one of them is enough
        ("not confirmed", ["open", "confirmed"], 0, "confirmed"),
        ("not confirmed", ["not confirmed"], 0, "not confirmed"),
        ("not confirmed", [], 0, "not confirmed"),
        ("not confirmed", ["open"], 0, "open"),
        ("not confirmed", ["not confirmed"], 1, "open"),
    ],
)
def test_one_case_for_it_is_enough_and_all_have_to_be_against_it(best, others, missing, verdict):
    findings = [Finding(each, "x") for each in (best, *others)]
    assert decide_best(findings, missing).verdict == verdict
