"""Windows around nodules in which what carries them is looked for."""

import pytest

from torchcaps.apps.lung.segment.carried import _SIDE, _around


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
