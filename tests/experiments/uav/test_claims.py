"""The claims of the chapter on flights are decided by rows, and open without them."""

import re

import numpy as np
import pytest
from experiments.made_rows import a_row, a_run, assert_decided_both_ways

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.records import Details, Protocol
from torchcaps.experiments.uav import claims, figure
from torchcaps.experiments.uav.anova import Sample, analyse
from torchcaps.experiments.uav.claims import (
    CALIBRATION,
    FIGURE,
    ROUTING,
    SENTINEL,
    STEPS,
    STORAGE,
    TABLE,
    TERRAIN,
    name_of,
)

LABELS = (TABLE, FIGURE, STORAGE, TERRAIN, ROUTING, STEPS, CALIBRATION, SENTINEL)
SETTINGS = [
    (head, size, likelihood) for head, size in claims._networks() for likelihood in claims.LIKELIHOODS
]


def details(times, errors=None, inside=0.97, updates=40):
    count = len(times)
    spread = np.linspace(-0.005, 0.005, count)
    levels = {"low": 0.5, "median": 1.0, "high": 3.0}
    series = {
        f"{part} {level}": times * np.linspace(500, 10, updates)
        for part in ("error", "sigma")
        for level, times in levels.items()
    }
    return Details(
        series={
            **series,
            "updates to convergence": np.array(times, float),
            "converged error": np.array(errors if errors is not None else [12.0] * count),
            "inside 95": inside + spread,
        }
    )


def flown(name, flights, budget="full"):
    """A row whose runs have these details, by their seeds."""
    runs = tuple(a_run(1.0, found, seed=seed) for seed, found in flights.items())
    return a_row(name, "converged_share", 100.0, runs=runs, protocols=(Protocol(budget=budget, epochs=2),))


def table(times_of, budget="full", seeds=3, **changes):
    """Rows of all networks; `times_of` gives the updates of four flights by the design of a setting."""
    rows = [
        flown(
            name_of(*design), {seed: details(times_of(*design), **changes) for seed in range(seeds)}, budget
        )
        for design in SETTINGS
    ]
    return lambda label: rows


def by_likelihood(head, size, likelihood):
    return [20.0, 22.0, 21.0, 23.0] if likelihood == "bayesian" else [31.0, 33.0, 32.0, -1.0]


def by_likelihood_turned(head, size, likelihood):
    return by_likelihood(head, size, "linear" if likelihood == "bayesian" else "bayesian")


def test_the_bayesian_likelihood_is_judged_over_seeds():
    assert claims.bayesian_is_faster(table(by_likelihood, "quick")).verdict == "confirmed"
    assert claims.bayesian_is_faster(table(by_likelihood_turned)).verdict == "not confirmed"
    same = table(lambda *design: [20.0, 22.0, 21.0, 23.0])
    assert claims.bayesian_is_faster(same).verdict == "not confirmed"
    assert claims.bayesian_is_faster(table(by_likelihood, seeds=1)).verdict == "open"


def test_a_flight_that_does_not_converge_counts_as_long_as_it_was_flown():
    assert claims._times(details([5.0, -1.0])).tolist() == [5.0, 40.0]
    words = claims.bayesian_is_faster(table(by_likelihood)).because
    assert words.startswith("updates saved (a flight that does not converge counts as long as it was flown)")


@pytest.mark.parametrize(("budget", "verdict"), [("full", "confirmed"), ("quick", "open")])
def test_an_effect_counts_in_the_full_budget_alone(budget, verdict):
    pytest.importorskip("statsmodels")
    finding = claims.matters("updates to convergence", "likelihood")(table(by_likelihood, budget))
    assert finding.verdict == verdict
    assert "p = " in finding.because


def test_a_probability_below_the_numbers_of_the_machine_is_not_called_zero(monkeypatch):
    monkeypatch.setattr(claims, "analyse", lambda samples: {"likelihood": 0.0})
    finding = claims.matters("updates to convergence", "likelihood")(table(by_likelihood))
    assert finding.because.startswith("p < 1e-300 over flights")


def test_an_effect_is_open_before_every_network_has_flown_twice():
    pytest.importorskip("statsmodels")
    check = claims.matters("updates to convergence", "likelihood")
    assert check(table(by_likelihood, seeds=1)).verdict == "open"
    rows = table(by_likelihood)("")
    of_two_sizes = [row for row in rows if "D=8" in row.setting or "D=16" in row.setting]
    assert check(lambda label: of_two_sizes).verdict == "open"
    assert "8 networks without two seeds" in check(lambda label: of_two_sizes).because


def test_a_factor_without_an_effect_is_not_confirmed():
    pytest.importorskip("statsmodels")
    rows = table(lambda *design: [20.0, 22.0, 21.0, 23.0])
    assert claims.matters("updates to convergence", "head")(rows).verdict == "not confirmed"


def test_an_effect_over_flights_that_share_networks_has_to_show_over_seeds_too():
    """Networks of one design differ by their seeds alone, and each flies many times."""
    pytest.importorskip("statsmodels")
    rng = np.random.default_rng(3)
    rows = [
        flown(
            name_of(*design),
            {
                seed: details(list(20 + 3 * rng.normal() + rng.normal(scale=0.1, size=12)))
                for seed in range(3)
            },
        )
        for design in SETTINGS
    ]
    found = claims.matters("updates to convergence", "head")(lambda label: rows)
    assert found.verdict == "open"
    over_flights, over_seeds = (float(p) for p in re.findall(r"p = ([\d.e-]+)", found.because))
    assert over_flights < 0.05 < over_seeds


def test_one_factor_alone_is_the_classic_analysis():
    pytest.importorskip("statsmodels")
    from scipy.stats import f_oneway

    rng = np.random.default_rng(0)
    groups = {8: rng.normal(0, 1, 9), 16: rng.normal(0.8, 1, 12), 32: rng.normal(0.2, 1, 7)}
    samples = [Sample(float(v), size, "fcn", "linear") for size, values in groups.items() for v in values]
    assert analyse(samples) == pytest.approx({"dimension": f_oneway(*groups.values()).pvalue})


def test_effects_of_two_factors_together_are_found():
    pytest.importorskip("statsmodels")
    rng = np.random.default_rng(1)
    samples = [
        Sample(float((size == 8) == (head == "fcn")) * 3 + rng.normal() * 0.2, size, head, likelihood)
        for size in (8, 16)
        for head in ("fcn", "capsules")
        for likelihood in claims.LIKELIHOODS
        for _ in range(6)
    ]
    found = analyse(samples)
    assert found["dimension and head"] < 1e-6
    assert found["likelihood"] > 0.01
    assert analyse([]) == {}
    lonely = Sample(1.0, 32, "fcn", "linear")
    assert analyse([*samples, lonely, lonely._replace(value=2.0)]) == pytest.approx(found)


@pytest.mark.parametrize(
    ("inside", "verdict"), [(0.97, "confirmed"), (0.80, "not confirmed"), (0.951, "open")]
)
def test_how_often_the_region_holds_the_truth_is_judged_over_seeds(inside, verdict):
    of_seeds = [details([9.0] * 4, inside=inside + more) for more in (-0.002, 0.0, 0.002)]
    rows = [flown("a", dict(enumerate(of_seeds)), "quick")]
    check = claims.holds_the_truth("label", ["a"])
    assert check(lambda label: rows).verdict == verdict


def test_flights_of_one_seed_are_not_taken_for_several_seeds():
    of_seeds = [details([9.0] * 24, inside=inside) for inside in (0.961, 0.983, 0.961)]
    check = claims.holds_the_truth("label", ["a"])
    assert check(lambda label: [flown("a", {0: of_seeds[0]})]).verdict == "open"
    assert check(lambda label: [flown("a", dict(enumerate(of_seeds)))]).verdict == "open"


def test_two_settings_are_compared_seed_by_seed():
    rows = [
        flown("a", {seed: details([5.0, 6.0, 7.0]) for seed in (42, 43)}),
        flown("b", {42: details([9.0, 9.0, 12.0]), 43: details([9.0, 10.0, 12.0])}),
    ]
    assert claims.sooner("label", "a", "b")(lambda label: rows).verdict == "confirmed"
    assert claims.sooner("label", "b", "a")(lambda label: rows).verdict == "not confirmed"
    assert claims.sooner("label", "a", "c")(lambda label: rows).verdict == "open"
    scattered = [rows[0], flown("b", {42: details([4.0, 5.0, 6.0]), 43: details([19.0, 19.0, 18.0])})]
    assert claims.sooner("label", "a", "b")(lambda label: scattered).verdict == "open"


def test_flights_of_different_seeds_are_not_compared():
    """Each seed has flights and a network of its own, and a seed may be missing in the middle."""
    slow, fast = ({42: 10.0, 43: 20.0, 44: 30.0}, {42: 9.0, 44: 28.0, 45: 1.0})
    rows = [
        flown(name, {seed: details([time] * 3) for seed, time in times.items()})
        for name, times in (("slow", slow), ("fast", fast))
    ]
    assert claims._saved(rows, "fast", "slow") == [1.0, 2.0]


@pytest.mark.parametrize(("updates", "verdict"), [(12.5, "confirmed"), (15.0, "not confirmed")])
def test_one_update_more_is_no_later(updates, verdict):
    rows = [
        a_row(name, "updates_to_convergence", value, seeds=3, spread=0.1)
        for name, value in (("whole", 12.0), ("pruned", updates))
    ]
    check = claims.fewer_updates("label", "pruned", "whole", late=1.0)
    assert check(lambda label: rows).verdict == verdict
    noisy = [a_row(row.setting, row.metric, row.ours, seeds=3, spread=5.0) for row in rows]
    assert check(lambda label: noisy).verdict == "open"


def test_claims_of_the_thesis_need_its_budget_and_ours_any():
    def rows(budget):
        return [
            a_row("a", "found_share", 90.0, seeds=3, spread=1.0, protocols=(Protocol(budget=budget),)),
            a_row("b", "found_share", 40.0, seeds=3, spread=1.0, protocols=(Protocol(budget=budget),)),
        ]

    ours = claims.finds_more("label", ["a"], ["b"])
    thesis = claims.finds_more("label", ["a"], ["b"], any_budget=False)
    assert ours(lambda label: rows("quick")).verdict == "confirmed"
    assert thesis(lambda label: rows("full")).verdict == "confirmed"
    assert thesis(lambda label: rows("quick")).verdict == "open"


@pytest.mark.parametrize(("spread", "is_open"), [(1.0, False), (90.0, True)])
def test_more_and_fewer_can_come_out_either_way(spread, is_open):
    rows = [
        a_row(name, metric, value, seeds=3, spread=spread)
        for name, value in (("a", 90.0), ("b", 40.0))
        for metric in ("found_share", "updates_to_convergence")
    ]

    def verdict(check):
        return check(lambda label: rows).verdict

    for one, two in (("a", "b"), ("b", "a")):
        more = verdict(claims.finds_more("label", [one], [two]))
        fewer = verdict(claims.fewer_updates("label", two, one))
        expected = "confirmed" if one == "a" else "not confirmed"
        assert more == fewer == ("open" if is_open else expected)
    assert verdict(claims.finds_more("label", ["a"], ["b", "c"])) == "open"  # the third has not flown
    assert verdict(claims.fewer_updates("label", "a", "c")) == "open"


@pytest.mark.parametrize(("share", "verdict"), [(100.0, "confirmed"), (40.0, "open")])
def test_updates_of_the_few_flights_that_converge_say_nothing_for_a_setting(share, verdict):
    rows = [
        a_row(name, metric, value, seeds=3, spread=0.1)
        for name, values in (("a", (9.0, share)), ("b", (12.0, 98.0)))
        for metric, value in zip(("updates_to_convergence", "converged_share"), values, strict=True)
    ]
    for check in (
        claims.fewer_updates("label", "a", "b"),
        claims.fewer_updates("label", "a", "b", late=1.0),
    ):
        assert check(lambda label: rows).verdict == verdict
    against = "not confirmed" if share == 100 else "open"  # more flights converge in b, late ones too
    worse = claims.fewer_updates("label", "b", "a")
    assert worse(lambda label: rows).verdict == against


@pytest.mark.parametrize(
    ("label", "number", "larger"),
    [
        (TERRAIN, 0, "^Caps|^FCN"),
        (SENTINEL, 0, "NAIP, clear"),
        (SENTINEL, 1, "Sentinel-2, clear"),
        (SENTINEL, 2, "Sentinel-2, clear"),
        (STORAGE, 0, "^D=16 as int8 . updates"),
        (ROUTING, 0, "^three rounds . updates"),
        (TABLE, 7, "D=8,.* . updates"),
        (TABLE, 8, "^FCN.*bayesian . converged_error"),
        (TABLE, 9, "^Caps|^FCN"),
    ],
)
def test_every_comparison_can_hold_fail_and_stay_open(label, number, larger):
    assert_decided_both_ways(EXPERIMENTS[label], number, larger)


def test_every_claim_speaks_of_settings_that_exist():
    for label in LABELS:
        names = {setting.name for setting in EXPERIMENTS[label].settings}
        metrics = EXPERIMENTS[label].metrics
        rows = [
            a_row(
                name,
                metric,
                1.0 + k,
                seeds=3,
                details=details([9.0 + k % 7, 8.0, 7.0], [3.0, 2.0, 1.0 + k % 5]),
            )
            for k, name in enumerate(sorted(names))
            for metric in metrics
        ]
        for claim in EXPERIMENTS[label].claims:
            assert "missing" not in claim.check(lambda label, rows=rows: rows).because, claim.text


def test_curves_are_drawn():
    assert figure.draw_curves(table(by_likelihood)(""))[1:4] == b"PNG"


def test_curves_have_bands_of_flights_and_say_so(monkeypatch):
    drawn = []
    monkeypatch.setattr(figure, "to_png", lambda drawing: drawn.append(drawing) or b"picture")
    figure.draw_curves(table(by_likelihood)(""))
    for axes in drawn[0].axes:
        heights = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (5, 1500)  # the median goes from 500 to 10
        assert "bands: 10th to 90th percentile of flights" in axes.get_xlabel()
