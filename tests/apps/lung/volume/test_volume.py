import math

import pytest

from torchcaps.apps.lung.volume import equivalent_diameter


def test_the_diameter_of_a_ball_is_that_of_its_volume():
    assert equivalent_diameter(4 / 3 * math.pi * 5**3) == pytest.approx(10)
