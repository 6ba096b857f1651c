"""Windows around nodules in which what carries them is looked for."""

import numpy as np
import pytest

from torchcaps.apps.lung.segment.carried import _SIDE, Carried, _around
from torchcaps.parse import Silenced


@pytest.mark.parametrize("at", [150.2, 200.0, 311.7])
def test_a_window_has_its_nodule_in_the_middle(at):
    found = _around(at, 512, 8)
    assert found.stop - found.start == _SIDE // 8 * 8
    assert (found.start + found.stop) / 2 == pytest.approx(at, abs=0.5)


@pytest.mark.parametrize(("at", "side"), [(2.0, 512), (510.0, 512), (20.0, 45)])
def test_a_window_stays_within_its_slice(at, side):
    found = _around(at, side, 8)
    assert 0 <= found.start <= at < found.stop <= side
    assert (found.stop - found.start) % 8 == 0


def carried(through_deepest, without_strongest, without_random):
    silenced = Silenced(0.9, without_strongest, without_random, capsules=10, reachable=100)
    heat = np.zeros((8, 8), np.float32)
    return Carried(1, heat, through_deepest, hardly_routes=False, silenced=silenced)


def test_capsules_that_carry_a_mark_are_named_so():
    assert carried(0.11, 0.6, 0.88).title == "capsules of the deepest level that carry it"


@pytest.mark.parametrize("measured", [(-0.001, 0.9001, 0.9002), (0.2, 0.9, 0.8)])
def test_capsules_that_a_mark_hardly_needs_do_not_carry_it(measured):
    assert "hardly carry it" in carried(*measured).title


def test_no_share_and_no_fall_is_minus_zero():
    assert "-0" not in carried(-0.001, 0.9001, 0.9002).words
