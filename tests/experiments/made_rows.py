"""Rows and results as runs would have left them."""

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


def a_run(value, details=None, **facts):
    return RowRun(facts=RunFacts(**{**FACTS, **facts}), value=value, details=details or Details())


def a_row(setting, metric, ours, **changes):
    """A row of one run, unless `runs` says otherwise; `details` and facts are those of its run."""
    details = changes.pop("details", None)
    facts = {name: changes.pop(name) for name in ("parameters", "seconds") if name in changes}
    runs = changes.pop("runs", (a_run(ours, details, **facts),))
    usual = {"protocols": (Protocol(budget="full", epochs=2),), "runs": runs}
    return Row(setting=setting, metric=metric, ours=ours, **{**usual, **changes})


def a_pair(network, metric, plain, rem, **changes):
    """Rows of a network without REM and with it."""
    return [
        a_row(f"{network}{suffix}", metric, value, network=network, variant=variant, **changes)
        for suffix, variant, value in (("+Q", PLAIN, plain), ("+REM", REM, rem))
    ]


def a_result(seed=42, **metrics):
    return RunResult.from_json({**FACTS, "seed": seed, "metrics": metrics})
