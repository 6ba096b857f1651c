"""Which answers count as changed, by hand."""

import math

import pytest
import torch
from zoo.conftest import untrained_run

from torchcaps.core import UserError
from torchcaps.train import load_run
from torchcaps.zoo.measured import rounding
from torchcaps.zoo.measured.rounding import CHANGES, halved


def turned(degrees):
    half = math.radians(degrees) / 2
    return [math.cos(half), 0.0, math.sin(half), 0.0]


def test_two_digits_are_the_same_in_either_order():
    before = {"activations": torch.tensor([[0.9, 0.8, 0.1], [0.9, 0.8, 0.1]])}
    after = {"activations": torch.tensor([[0.8, 0.9, 0.1], [0.9, 0.1, 0.8]])}
    assert CHANGES["overlap"](before, after).tolist() == [False, True]


def test_a_rotation_changes_by_more_than_a_degree_of_the_class_that_won():
    activations = torch.tensor([[0.9, 0.1]] * 3)
    before = {"activations": activations, "rotations": torch.tensor([[turned(0), turned(0)]] * 3)}
    after = {
        "activations": activations,
        "rotations": torch.tensor(
            [[turned(0.9), turned(50)], [turned(1.1), turned(0)], [[-x for x in turned(0)], turned(0)]]
        ),
    }
    assert CHANGES["pose"](before, after).tolist() == [False, True, False]


def test_a_descriptor_changes_where_another_image_is_the_nearest_one():
    before = {"descriptors": torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])}
    after = {"descriptors": torch.tensor([[0.0, 0.0], [2.0, 0.0], [3.0, 0.0]])}
    assert CHANGES["retrieval"](before, after).tolist() == [False, True, False]


def test_weights_are_rounded_to_ten_bits():
    state = {"weight": torch.tensor([1 + 2**-10, 1 + 2**-12]), "steps": torch.tensor([7])}
    found = halved(state)
    assert found["weight"].tolist() == [1 + 2**-10, 1.0]
    assert found["steps"].dtype == torch.int64


@pytest.mark.parametrize(("changed", "is_refused"), [(2, False), (3, True)])
def test_one_answer_in_a_thousand_may_change(changed, is_refused, tmp_path, monkeypatch):
    before, after = torch.eye(2).repeat(1000, 1), torch.eye(2).repeat(1000, 1)
    after[:changed] = after[:changed].flip(1)
    both = ({"activations": before}, {"activations": after})
    monkeypatch.setattr(rounding, "_outputs_of_both", lambda *_: both)
    run = load_run(untrained_run(tmp_path / "run", "classification"))
    if is_refused:
        with pytest.raises(UserError, match="3 of 2,000 answers"):
            rounding.measure_rounding(run)
    else:
        assert rounding.measure_rounding(run).changed == changed
