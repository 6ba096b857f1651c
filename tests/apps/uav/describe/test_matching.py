from dataclasses import replace

import numpy as np
import pytest

from torchcaps.apps.uav import AbBrief, Terrain, measure_matching
from torchcaps.core import UserError


@pytest.fixture(scope="module")
def stack():
    return Terrain(seed=4).draw(3000.0, 1200.0, 10.0, ("summer", "winter"))


def cut_off(stack, first):
    """The stack, which shows nothing from a column on."""
    images, known = stack.images.copy(), stack.known.copy()
    images[..., first:], known[..., first:] = 0, False
    return replace(stack, images=images, known=known)


def test_matches_are_measured_where_the_map_shows_ground(stack):
    found = measure_matching(AbBrief(side=16, size=32), [cut_off(stack, 275)])
    assert np.mean(np.array(found.same) == 0) < 0.05  # black ground is the same everywhere
    assert np.mean(np.array(found.other) == 0) < 0.01


def test_a_map_with_too_little_ground_on_all_dates_is_refused(stack):
    with pytest.raises(UserError, match="show too little of the ground"):
        measure_matching(AbBrief(side=16, size=32), [cut_off(stack, 230)])
