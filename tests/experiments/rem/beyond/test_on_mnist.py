"""The claims about small networks for all of MNIST, with rows for and against each."""

import pytest
from experiments.made_rows import a_row

from torchcaps.experiments.rem.beyond.on_mnist import (
    LABEL,
    fewer_operations,
    fewer_trees,
    routing_decides,
)
from torchcaps.experiments.rem.setting import PLAIN, REM

GAMMA, DR = "gamma-CapsNet, small", "DR-CapsNet"


def rows_of(network, plain, rem, *, spread=0.01, seeds=3):
    """Rows of a network without REM and with it, from its metrics both ways."""
    rows = [
        a_row(
            f"{network}, {variant}",
            metric,
            value,
            network=network,
            variant=variant,
            spread=spread,
            seeds=seeds,
        )
        for variant, metrics in ((PLAIN, plain), (REM, rem))
        for metric, value in metrics.items()
    ]
    return lambda label: rows if label == LABEL else []


@pytest.mark.parametrize(
    ("trees", "accuracy", "spread", "verdict"),
    [
        ((300, 100), (99.5, 99.4), 0.01, "confirmed"),
        ((300, 100), (99.5, 98.4), 0.01, "not confirmed"),  # a point is not kept
        ((100, 300), (99.5, 99.5), 0.01, "not confirmed"),
        ((300, 100), (99.5, 99.4), 300.0, "open"),
    ],
)
def test_fewer_trees(trees, accuracy, spread, verdict):
    plain, rem = ({"keys": keys, "test_accuracy": hits} for keys, hits in zip(trees, accuracy, strict=True))
    assert fewer_trees(rows_of(GAMMA, plain, rem, spread=spread)).verdict == verdict
    assert fewer_trees(rows_of(GAMMA, plain, rem, spread=spread, seeds=1)).verdict == "open"


@pytest.mark.parametrize(
    ("share", "accuracy", "verdict"),
    [(24.0, 99.4, "confirmed"), (60.0, 99.4, "not confirmed"), (24.0, 98.0, "not confirmed")],
)
def test_fewer_operations(share, accuracy, verdict):
    plain = {"operations_share": 100.0, "test_accuracy": 99.6}
    rem = {"operations_share": share, "test_accuracy": accuracy}
    assert fewer_operations(rows_of(DR, plain, rem)).verdict == verdict
    assert fewer_operations(rows_of(GAMMA, plain, rem)).verdict == "open"  # says nothing of DR-CapsNet


@pytest.mark.parametrize(
    ("even", "verdict"),
    [((15.0, 12.0), "confirmed"), ((15.0, 95.0), "not confirmed"), ((95.0, 12.0), "not confirmed")],
)
def test_routing_decides(even, verdict):
    plain, rem = ({"accuracy_with_even": share} for share in even)
    assert routing_decides(rows_of(GAMMA, plain, rem)).verdict == verdict
