"""A localized flight is drawn where it was."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from torchcaps.viz.flight import FlightDrawing, smaller_belief
from torchcaps.viz.markup import read_template


@pytest.mark.parametrize("shape", [(600, 61), (61, 600), (121, 21), (120, 7), (241, 241)])
def test_a_smaller_belief_is_where_the_belief_was(shape):
    for axis, cells in enumerate(shape):
        for cell in range(cells):
            belief = np.zeros(shape)
            belief[(cell, 0) if axis == 0 else (0, cell)] = 1.0
            found = smaller_belief(belief)
            assert found.max() == 1.0  # a narrow peak stays
            assert max(found.shape) <= 120
            block = int(np.argwhere(found == 1.0)[0][axis])
            size = cells / found.shape[axis]
            assert block * size - 1 < cell < (block + 1) * size  # off by less than a cell


def test_the_truth_is_seen_where_there_is_no_picture_of_the_map():
    drawing = FlightDrawing("x", None, np.zeros((1, 2)), [None], [1.0], [None], [""], {}, (1.0, 1.0))
    assert np.abs(drawing.ground - np.array(to_rgb("white"))).max(-1).min() > 0.4


def test_without_scripts_the_page_says_that_it_needs_them():
    assert "<noscript><p>The flight is shown with JavaScript" in read_template("flight.html")
