from dataclasses import replace

import pytest
from experiments.made_rows import a_row, a_run, seeds_row

from torchcaps.experiments.plan.compare import larger, larger_metric
from torchcaps.experiments.records import Protocol


def of(rows):
    return lambda label: rows if label == "fig:x" else []


def rows(**means):
    """One row of three seeds for each setting."""
    return [seeds_row(name, "entropy", value) for name, value in means.items()]


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ({"a": 9.0, "b": 4.0, "c": 9.0, "d": 4.0}, "confirmed"),
        ({"a": 9.0, "b": 4.0, "c": 4.0, "d": 9.0}, "not confirmed"),
        ({"a": 9.0, "b": 4.0}, "open"),  # the other pair has not run
        ({"a": 4.0, "b": 9.0}, "not confirmed"),  # and need not, where one pair is against it
        ({"a": 9.0, "b": 4.0, "c": 9.0}, "open"),
        ({"a": 9.0, "c": 9.0}, "open"),
    ],
)
def test_every_planned_pair_has_to_show_it(means, verdict):
    check = larger("fig:x", "entropy", [("a", "b"), ("c", "d")])
    assert check(of(rows(**means))).verdict == verdict


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ([("a", "b"), ("c", "d")], "not in c"),
        ([("a", "b"), ("a", "d")], "not in d"),  # one against several: the others tell the cases apart
    ],
)
def test_a_pair_is_named_by_what_tells_it_from_the_others(pairs, named):
    found = larger("fig:x", "entropy", pairs)(of(rows(a=9.0, b=4.0, c=4.0, d=12.0)))
    assert (found.verdict, found.because.rpartition("; ")[2]) == ("not confirmed", named)


def test_means_are_named_with_spread_and_unit():
    found = larger("fig:x", "entropy", [("a", "b")])(of(rows(a=9.0, b=4.0)))
    assert found.because == "b 4.00 ± 0.01 bits; a 9.00 ± 0.01 bits"


@pytest.mark.parametrize("spread", [None, 9.0])
def test_a_single_seed_and_a_difference_within_the_spread_decide_nothing(spread):
    found = [seeds_row(name, "entropy", value, spread) for name, value in (("a", 9.0), ("b", 4.0))]
    assert larger("fig:x", "entropy", [("a", "b")])(of(found)).verdict == "open"


@pytest.mark.parametrize(("annealed", "verdict"), [(9.0, "confirmed"), (4.0, "open")])
@pytest.mark.parametrize(("is_used_up", "iterations"), [(True, (1, 5)), (False, (1, 5)), (True, None)])
def test_a_search_that_ran_out_of_epochs_may_win_and_does_not_lose(annealed, verdict, is_used_up, iterations):
    protocol = Protocol(budget="full", epochs=2, patience=1, is_used_up=is_used_up, iterations=iterations)
    found = [
        replace(seeds_row("a", "entropy", annealed), protocols=(protocol,)),
        seeds_row("b", "entropy", 6.0),
    ]
    is_cut = is_used_up and iterations is not None
    expected = verdict if is_cut or verdict == "confirmed" else "not confirmed"
    assert larger("fig:x", "entropy", [("a", "b")])(of(found)).verdict == expected


def test_short_runs_count_only_where_any_budget_does():
    short = [seeds_row(name, "entropy", value, budget="quick") for name, value in (("a", 9.0), ("b", 4.0))]
    assert larger("fig:x", "entropy", [("a", "b")])(of(short)).verdict == "confirmed"
    assert larger("fig:x", "entropy", [("a", "b")], any_budget=False)(of(short)).verdict == "open"


@pytest.mark.parametrize(
    ("novel", "verdict"), [(9.0, "confirmed"), (3.0, "not confirmed"), (2.0, "not confirmed")]
)
def test_two_metrics_of_one_setting_are_compared(novel, verdict):
    found = [seeds_row("a", "test_rotation_error", 3.0), seeds_row("a", "novel_error", novel)]
    check = larger_metric("fig:x", "novel_error", "test_rotation_error", ["a"])
    assert check(of(found)).verdict == verdict


@pytest.mark.parametrize(
    ("purity", "verdict"), [(35.0, "confirmed"), (30.5, "not confirmed"), (31.0, "open")]
)
def test_one_metric_may_have_to_be_larger_by_a_certain_amount(purity, verdict):
    found = [seeds_row("a", "part_purity", purity, 0.2), seeds_row("a", "part_purity_base", 30.0, 0.1)]
    check = larger_metric("fig:x", "part_purity", "part_purity_base", ["a"], by=1.0)
    assert check(of(found)).verdict == verdict


@pytest.mark.parametrize("novel", [(1.0, 7.0, 9.0), (9.0,)])
def test_runs_that_disagree_on_two_metrics_and_a_single_run_decide_nothing(novel):
    found = [
        a_row(
            "a", metric, 5.0, spread=4.0, runs=tuple(a_run(value, seed=n) for n, value in enumerate(values))
        )
        for metric, values in (("test_rotation_error", (5.0, 5.0, 5.0)), ("novel_error", novel))
    ]
    check = larger_metric("fig:x", "novel_error", "test_rotation_error", ["a"])
    assert check(of(found)).verdict == "open"


@pytest.mark.parametrize("budget", ["quick", "full"])
def test_short_runs_of_two_metrics_count_only_where_any_budget_does(budget):
    made = [
        seeds_row("a", metric, value, budget=budget)
        for metric, value in (("tree_precision", 90.0), ("even_tree_precision", 40.0))
    ]
    verdicts = {
        any_budget: larger_metric(
            "fig:x", "tree_precision", "even_tree_precision", ["a"], any_budget=any_budget
        )(of(made)).verdict
        for any_budget in (True, False)
    }
    assert verdicts == {True: "confirmed", False: "confirmed" if budget == "full" else "open"}


def test_both_metrics_of_every_planned_setting_have_to_be_there():
    def measured(setting, metric, value):
        runs = tuple(a_run(value + 0.001 * seed, seed=seed) for seed in range(3))
        return a_row(setting, metric, 100 * value, runs=runs)

    first = [measured("a", "tree_precision", 0.9), measured("a", "even_tree_precision", 0.5)]
    check = larger_metric("fig:x", "tree_precision", "even_tree_precision", ["a", "b"])
    assert check(of(first)).verdict == "open"
    assert check(of([*first, measured("b", "tree_precision", 0.9)])).verdict == "open"
    second = [measured("b", "tree_precision", 0.9), measured("b", "even_tree_precision", 0.5)]
    assert check(of([*first, *second])).verdict == "confirmed"
