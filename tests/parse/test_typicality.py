import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.core import UserError
from torchcaps.parse import Keys, learn_trees, roc_auc, share_below


def random_keys(seed, images, children, levels, classes):
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, levels, (images, children)).astype(np.uint8)
    return Keys(indices, rng.integers(0, classes, images), levels, classes)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 3), st.integers(2, 4), st.integers(1, 3))
def test_surprise_is_that_of_counting_one_by_one(seed, images, children, levels, classes):
    reference = random_keys(seed, images, children, levels, classes)
    seen = random_keys(seed + 1, 10, children, levels, classes)
    model = learn_trees(reference)
    whole, by_child = model.key_surprise(seen), model.child_surprise(seen)
    for number, (row, j) in enumerate(zip(seen.indices.tolist(), seen.predicted, strict=True)):
        same_class = [
            r for r, p in zip(reference.indices.tolist(), reference.predicted, strict=True) if p == j
        ]
        n = len(same_class)
        if not n:
            assert whole[number] == by_child[number] == math.inf
            continue
        trees = len({tuple(other) for other in same_class})
        share = (same_class.count(row) + 0.5) / (n + 0.5 * (trees + 1))
        assert whole[number] == pytest.approx(-math.log2(share))
        expected = 0.0
        for child, level in enumerate(row):
            hits = sum(other[child] == level for other in same_class)
            expected -= math.log2((hits + 0.5) / (n + 0.5 * levels))
        assert by_child[number] == pytest.approx(expected)


def test_probabilities_of_a_child_sum_to_one():
    model = learn_trees(random_keys(0, 50, 3, 5, 2))
    np.testing.assert_allclose((2.0**-model.level_bits).sum(-1), 1)


def test_more_images_than_fit_one_part_are_all_counted():
    reference = random_keys(0, 2500, 2, 3, 1)
    counts = 2.0 ** -learn_trees(reference).level_bits[0, 0] * (2500 + 1.5) - 0.5
    np.testing.assert_allclose(counts, np.bincount(reference.indices[:, 0], minlength=3))


def test_keys_of_another_network_are_refused():
    model = learn_trees(random_keys(0, 5, 3, 5, 2))
    with pytest.raises(
        UserError, match="2 classes, 4 children and 5 levels do not fit a model of 2, 3 and 5"
    ):
        model.child_surprise(random_keys(0, 5, 4, 5, 2))


scores = st.lists(st.integers(0, 6).map(float) | st.just(math.inf), min_size=1, max_size=20).map(np.array)


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_the_area_is_that_of_asking_each_pair(normal, strange):
    wins = sum((s > n) + 0.5 * (s == n) for s in strange for n in normal)
    assert roc_auc(normal, strange) == wins / (len(normal) * len(strange))


def test_the_area_of_extremes():
    assert roc_auc(np.array([1.0, 2.0]), np.array([3.0])) == 1.0
    assert roc_auc(np.array([1.0, 2.0]), np.array([0.0])) == 0.0
    assert roc_auc(np.array([1.0]), np.array([1.0])) == 0.5


def test_scores_that_give_no_area_are_refused():
    with pytest.raises(UserError, match="both kinds"):
        roc_auc(np.array([]), np.array([1.0]))
    with pytest.raises(UserError, match="NaN"):
        roc_auc(np.array([1.0]), np.array([math.nan]))


def test_the_share_of_scores_that_are_lower():
    assert share_below(3.0, np.array([1.0, 2.0, 3.0, 4.0])) == 0.5
    with pytest.raises(UserError, match="no reference images"):
        share_below(1.0, np.array([]))
