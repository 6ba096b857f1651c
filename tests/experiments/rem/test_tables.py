import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.experiments.rem.tables import decided_children
from torchcaps.parse import Keys


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 100))
def test_decided_children_are_those_off_an_equal_share(images, children, seed):
    indices = np.random.default_rng(seed).integers(0, 4, (images, children)).astype(np.uint8)
    keys = Keys(indices, np.zeros(images, dtype=np.int64), 11, 10)
    slow = sum(index / 10 != 0.1 for row in indices.tolist() for index in row) / images
    assert decided_children(keys) == pytest.approx(slow)


def test_an_equal_share_depends_on_the_number_of_classes():
    keys = Keys(np.array([[2, 2, 1]], dtype=np.uint8), np.zeros(1, dtype=np.int64), 11, 5)
    assert decided_children(keys) == 1
