"""Rows and results as runs would have left them."""

import re
from dataclasses import replace
from statistics import stdev

from torchcaps.core import metric_of
from torchcaps.experiments.records import Details, Protocol, Row, RowRun, RunFacts, RunResult
from torchcaps.experiments.rem.setting import PLAIN, REM

FACTS = {
    "seed": 42,
    "commit": "abc",
    "versions": {"torch": "2"},
    "device": "cpu",
    "seconds": 1.0,
    "precision": "32",
    "parameters": 10,
}
RECIPE = {"model": {"name": "a"}, "data": {"limit": 0}, "epochs": 2, "patience": 0}


def a_run(value, details=None, **facts):
    return RowRun(facts=RunFacts(**{**FACTS, **facts}), value=value, details=details or Details())


def a_row(setting, metric, ours, **changes):
    """A row of one run, or of `seeds` that scatter by `spread`; `details` and facts are those of its runs."""
    details, seeds = changes.pop("details", None), changes.pop("seeds", 1)
    facts = {name: changes.pop(name) for name in ("parameters", "seconds") if name in changes}
    values = spread_values(metric, ours, changes.get("spread") or 0.0, seeds)
    runs = changes.pop(
        "runs", tuple(a_run(value, details, seed=42 + n, **facts) for n, value in enumerate(values))
    )
    if len(runs) > 1:
        changes = {"spread": 0.0, **changes}
    usual = {"protocols": (Protocol(budget="full", epochs=2),), "runs": runs}
    return Row(setting=setting, metric=metric, ours=ours, **{**usual, **changes})


def measured(row, **changes):
    """The row with another mean or deviation, and runs that scatter so."""
    row = replace(row, **changes)
    values = spread_values(row.metric, row.ours, row.spread or 0.0, row.seeds)
    runs = (replace(run, value=value) for run, value in zip(row.runs, values, strict=True))
    return replace(row, runs=tuple(runs))


def spread_values(metric, ours, spread, seeds):
    """What `seeds` runs measured whose mean and deviation these are, in the unit of the metric."""
    scale = metric_of(metric).scale
    places = [place - (seeds - 1) / 2 for place in range(seeds)]
    step = spread / stdev(places) if seeds > 1 else 0.0
    return [(ours + step * place) / scale for place in places]


def a_pair(network, metric, plain, rem, **changes):
    """Rows of a network without REM and with it."""
    return [
        a_row(f"{network}{suffix}", metric, value, network=network, variant=variant, **changes)
        for suffix, variant, value in (("+Q", PLAIN, plain), ("+REM", REM, rem))
    ]


def a_result(seed=42, **metrics):
    return RunResult.from_json({**FACTS, "seed": seed, "metrics": metrics, "recipe": RECIPE})


def seeds_row(setting, metric, ours, spread=0.01, budget="full"):
    """A row of three seeds, or of one where there is no spread."""
    protocols = (Protocol(budget=budget, epochs=2),)
    return a_row(setting, metric, ours, spread=spread, seeds=1 if spread is None else 3, protocols=protocols)


def rows_of_all(experiment):
    """Rows of three seeds of all settings and metrics, each with a number of its own."""
    return [
        replace(
            seeds_row(setting.name, metric, number + 1.0 + place / 3),
            network=setting.network,
            variant=setting.variant,
            thesis=setting.thesis.get(metric),
        )
        for place, metric in enumerate(experiment.metrics)
        for number, setting in enumerate(experiment.settings)
    ]


def rows_where(experiment, larger, *, noise=0.0):
    """Rows of three seeds: 2.0 where "setting | metric" matches `larger`, else 1.0.

    Noise is against: the seeds of one kind scatter in the other order than those of the other.
    """
    rows = []
    for setting in experiment.settings:
        for metric in experiment.metrics:
            is_larger = re.search(larger, f"{setting.name} | {metric}") is not None
            value, scatter = (2.0, noise) if is_larger else (1.0, -noise)
            runs = tuple(a_run(value + seed * scatter, seed=seed) for seed in (-1, 0, 1))
            rows.append(a_row(setting.name, metric, value, spread=max(noise, 0.01), runs=runs))
    return lambda label: rows if label == experiment.label else []


def assert_decided_both_ways(experiment, number, larger):
    """A claim holds where what matches `larger` has more, not where it has less, and is open in noise."""
    claim = experiment.claims[number]
    assert claim.check(rows_where(experiment, larger)).verdict in ("confirmed", "beyond"), claim.text
    turned = rf"^(?!.*(?:{larger}))"
    assert claim.check(rows_where(experiment, turned)).verdict == "not confirmed", claim.text
    equal = claim.check(rows_where(experiment, "")).verdict
    assert equal in ("not confirmed", "open"), claim.text
    assert claim.check(rows_where(experiment, larger, noise=9.0)).verdict == "open", claim.text
