"""Means over nodules, by size and patient."""

import json
import math

import numpy as np
import pytest

from torchcaps.apps.lung.measure import Overlap
from torchcaps.apps.lung.report import Case, bootstrap_mean, summarise
from torchcaps.core import UserError


def case(patient, diameter, dice, hd95=1.0, predicted=10.0):
    overlap = Overlap(dice, dice / 2, hd95, -0.5, 10.0, predicted)
    return Case(patient=patient, nodule="1", diameter=diameter, overlap=overlap)


def test_nodules_are_told_by_size_and_patient():
    found = summarise([case("a", 4.0, 0.2), case("a", 6.0, 0.4), case("b", 30.0, 0.9)])
    assert {name: rows["nodules"] for name, rows in found["by_size"].items()} == {
        "under 6 mm": 1,
        "6 to 10 mm": 1,
        "over 10 mm": 1,
    }
    assert found["by_patient"]["a"]["dice"] == pytest.approx(0.3)
    assert found["all"]["dice"]["mean"] == pytest.approx(0.5)
    assert found["all"]["volume_error"]["mean"] == pytest.approx(0.5)  # its size
    json.dumps(found, allow_nan=False)


def test_a_missed_nodule_counts_in_dice_and_is_left_out_of_distances():
    found = summarise([case("a", 4.0, 0.0, math.nan, predicted=0.0), case("b", 4.0, 0.8, 3.0)])
    assert found["missed"] == 1
    assert found["all"]["dice"]["mean"] == pytest.approx(0.4)
    assert found["all"]["hd95"] == {"mean": 3.0, "low": None, "high": None, "defined": 1}


def test_intervals_come_from_drawing_patients():
    random = np.random.default_rng(0)
    means = random.normal(0.7, 0.1, 40)
    values = {str(number): [mean] * 25 for number, mean in enumerate(means)}  # nodules add no knowledge
    found = bootstrap_mean(values)
    error = means.std(ddof=1) / math.sqrt(len(means))
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.1)
    assert found.low < found.mean < found.high
    assert found == bootstrap_mean(values)


def test_patients_with_many_nodules_weigh_more_in_means_and_intervals():
    few, many = {f"a{k}": [1.0] for k in range(20)}, {f"b{k}": [0.0] * 9 for k in range(20)}
    found = bootstrap_mean(few | many)
    assert found.mean == pytest.approx(0.1)
    assert 0 < found.low < 0.1 < found.high < 0.3


def test_a_nodule_is_missed_where_not_one_voxel_of_it_was_marked():
    beside = case("a", 4.0, 0.0, 9.0, predicted=5.0)  # a mark that does not touch it
    touched = case("a", 4.0, 0.01, 9.0, predicted=5.0)
    nothing = Case(patient="b", nodule="1", diameter=None, overlap=Overlap(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    missed = case("c", 4.0, 0.0, math.nan, predicted=0.0)
    assert summarise([beside, touched, nothing, missed])["missed"] == 2


def test_one_patient_gives_no_interval_and_none_an_error():
    assert bootstrap_mean({"a": [0.5, 0.7]})[1:3] == (None, None)
    with pytest.raises(UserError, match="no nodules"):
        summarise([])


def test_six_millimetres_are_not_under_six_and_ten_are_over_ten():
    sizes = summarise([case("a", diameter, 0.5) for diameter in (5.99, 6.0, 9.99, 10.0)])["by_size"]
    assert [sizes[name]["nodules"] for name in ("under 6 mm", "6 to 10 mm", "over 10 mm")] == [1, 2, 1]
