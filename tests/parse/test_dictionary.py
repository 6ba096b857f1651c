import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.core import UserError
from torchcaps.parse import KeyCollector, Keys, count_trees

from refusal import REFUSED


def slow_dictionary(coupling, predicted, levels):
    """Keys as texts of indices, and entropies, one number at a time."""
    trees = [{} for _ in range(len(coupling[0][0]))]
    for image, j in zip(coupling, predicted, strict=True):
        key = " ".join(str(min(range(levels), key=lambda k: abs(row[j] - k / (levels - 1)))) for row in image)
        trees[j][key] = trees[j].get(key, 0) + 1
    entropies = []
    for counts in trees:
        total = sum(counts.values())
        entropies.append(
            -sum(n / total * math.log(n / total, 2) for n in counts.values()) if counts else None
        )
    return [sorted(counts.values()) for counts in trees], entropies


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([2, 3, 6, 11, 300]),
    st.integers(1, 7),
)
def test_the_slow_dictionary_is_the_same(seed, images, children, classes, levels, batch):
    generator = torch.Generator().manual_seed(seed)
    coupling = torch.rand(images, children, classes, generator=generator, dtype=torch.float64)
    predicted = torch.randint(classes, (images,), generator=generator)
    collector = KeyCollector(levels, classes)
    for part in zip(torch.split(coupling, batch), torch.split(predicted, batch), strict=True):
        collector.add(*part)
    found = count_trees(collector.keys())
    counts, entropies = slow_dictionary(coupling.tolist(), predicted.tolist(), levels)
    assert [sorted(trees.counts.values()) for trees in found.classes] == counts
    assert [trees.entropy for trees in found.classes] == pytest.approx(entropies)
    known = [entropy for entropy in entropies if entropy is not None]
    assert found.entropy == pytest.approx(sum(known) / len(known))
    assert found.num_keys == sum(map(len, counts))
    assert found.empty_classes == tuple(j for j, row in enumerate(counts) if not row)
    for trees in found.classes:
        assert trees.samples == 0 or -1e-12 <= trees.entropy <= trees.bound + 1e-12


def test_keys_that_differ_in_one_child_are_never_merged():
    indices = np.zeros((1153, 1152), dtype=np.uint8)
    indices[np.arange(1152), np.arange(1152)] = 1
    found = count_trees(Keys(indices, np.zeros(1153, dtype=np.int64), 11, 2))
    assert found.num_keys == 1153
    assert found.classes[0].entropy == pytest.approx(math.log2(1153), abs=1e-12)


def test_two_byte_indices_are_compared_in_full():
    indices = np.array([[256, 1], [1, 256], [256, 1]], dtype=np.int16)
    found = count_trees(Keys(indices, np.zeros(3, dtype=np.int64), 300, 1))
    assert sorted(found.classes[0].counts.values()) == [1, 2]


def test_one_tree_for_all_has_no_entropy_and_one_for_each_has_the_bound():
    same = count_trees(Keys(np.zeros((7, 3), np.uint8), np.zeros(7, np.int64), 11, 1))
    assert (same.entropy, same.num_keys) == (0.0, 1)
    assert same.classes[0].bound == math.log2(7)
    each = count_trees(Keys(np.arange(8, dtype=np.uint8)[:, None], np.zeros(8, np.int64), 11, 1))
    assert each.entropy == each.classes[0].bound == 3.0
    hundred = count_trees(Keys(np.arange(100, dtype=np.uint8)[:, None], np.zeros(100, np.int64), 101, 1))
    assert hundred.classes[0].entropy <= hundred.classes[0].bound == math.log2(100)


def test_a_class_nobody_predicts_is_stated_and_left_out():
    indices = np.array([[0], [1]], np.uint8)
    found = count_trees(Keys(indices, np.array([0, 0]), 11, 3))
    assert found.empty_classes == (1, 2)
    assert found.entropy == 1.0
    assert found.rows(("a", "b", "c"))[1] == {
        "class": "b",
        "images": 0,
        "keys": 0,
        "entropy": None,
        "bound": None,
    }


def test_no_images_and_wrong_layers_are_refused():
    with pytest.raises(UserError, match="no images"):
        KeyCollector(11, 3).keys()
    with pytest.raises(UserError, match="4 parents, not to 3 classes"):
        KeyCollector(11, 3).add(torch.rand(2, 5, 4), torch.tensor([0, 1]))
    with pytest.raises(REFUSED):
        KeyCollector(11, 3).add(torch.rand(2, 5, 3), torch.tensor([0, 1, 2]))
    with pytest.raises(UserError, match="levels"):
        KeyCollector(1, 3).add(torch.rand(2, 5, 3), torch.tensor([0, 1]))


def test_ten_thousand_images_of_1152_children_take_less_than_two_seconds():
    import time

    generator = torch.Generator().manual_seed(0)
    batch = torch.rand(500, 1152, 10, generator=generator)
    predicted = torch.randint(10, (500,), generator=generator)
    collector = KeyCollector(11, 10)
    started = time.perf_counter()
    for _ in range(20):
        collector.add(batch, predicted)
    found = count_trees(collector.keys())
    assert found.num_keys == 500
    assert time.perf_counter() - started < 2.0  # 0.05 s on a quiet machine


def test_an_empty_batch_alone_makes_no_trees():
    collector = KeyCollector(11, 3)
    collector.add(torch.zeros(0, 4, 3), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(UserError, match="no images"):
        collector.keys()
    empty = Keys(np.zeros((0, 4), dtype=np.uint8), np.zeros(0, dtype=np.int64), 11, 3)
    with pytest.raises(UserError, match="no images"):
        count_trees(empty)
