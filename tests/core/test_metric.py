import math

import pytest

from torchcaps.core import UserError
from torchcaps.core.metric import METRICS, Metric, metric_of


def test_a_key_names_its_metric_with_or_without_a_split():
    assert metric_of("test_accuracy") is metric_of("accuracy") is METRICS["accuracy"]
    with pytest.raises(UserError, match="accuracy"):
        metric_of("test_acuracy")


def test_values_are_printed_in_their_unit():
    assert metric_of("accuracy").format(0.99554) == "99.55%"
    assert Metric("entropy", "entropy", "lower", "bits").format(9.531) == "9.53 bits"
    assert Metric("angle", "angle", "lower", "°").format(7.25) == "7.25°"
    assert Metric("keys", "keys", "neither", digits=0).format(8654) == "8,654"


@pytest.mark.parametrize(("better", "high", "low"), [("higher", True, False), ("lower", False, True)])
def test_direction_decides_what_is_better(better, high, low):
    metric = Metric("m", "m", better)
    assert metric.is_better(2.0, 1.0) is high
    assert metric.is_better(1.0, 2.0) is low
    assert not metric.is_better(1.0, 1.0)
    assert not metric.is_better(math.nan, 1.0)
    assert metric.best([1.0, 3.0, 2.0]) == (3.0 if high else 1.0)


def test_a_count_is_never_better():
    assert not Metric("keys", "keys", "neither").is_better(2.0, 1.0)
