"""Connected pieces of a predicted mask."""

import math

import numpy as np
import pytest

from torchcaps.apps.lung import Volume
from torchcaps.apps.lung.segment.pieces import list_nodules

from apps.lung.ct import volume
from refusal import REFUSED

SPACING = (2.0, 0.8, 0.7)


def balls(*places, shape=(12, 40, 40)):
    """Probability 0.9 in balls (slice, row, column, radius in mm), 0.1 elsewhere."""
    found = np.full(shape, 0.1, np.float16)
    grid = np.stack(np.mgrid[tuple(slice(side) for side in shape)], axis=-1)
    for *centre, radius in places:
        found[(((grid - centre) * SPACING) ** 2).sum(-1) <= radius**2] = 0.9
    return found


def test_nodules_have_their_size_and_place_in_millimetres():
    probability = balls((5, 12, 30, 6.0), (6, 30, 8, 3.0))
    found = list_nodules(probability, volume(np.zeros(probability.shape, np.int16)))
    large, small = found.nodules
    assert [large.number, small.number] == [1, 2]
    assert large.diameter == pytest.approx(12, rel=0.05)
    assert large.volume == pytest.approx(4 / 3 * math.pi * 6**3, rel=0.1)
    assert large.probability == pytest.approx(0.9, abs=1e-3)
    assert large.slice == 5
    assert large.centre == pytest.approx((-100 + 30 * 0.7, -120 + 12 * 0.8, 40 + 5 * 2.0))
    assert np.array_equal(found.labels > 0, probability > 0.5)
    assert found.labels[6, 30, 8] == 2


def test_pieces_too_small_for_a_nodule_are_left_out_and_counted():
    probability = balls((5, 12, 30, 6.0), (6, 30, 8, 0.5))
    found = list_nodules(probability, volume(np.zeros(probability.shape, np.int16)))
    assert (len(found.nodules), found.too_small) == (1, 1)
    assert found.labels[6, 30, 8] == 0


def test_pieces_that_touch_at_a_corner_are_one():
    probability = np.zeros((2, 30, 30), np.float16)
    probability[0, 5:15, 5:15] = probability[1, 15:25, 15:25] = 1
    assert len(list_nodules(probability, volume(np.zeros((2, 30, 30), np.int16))).nodules) == 1


def test_a_picture_has_nodules_without_millimetres():
    probability = np.zeros((1, 30, 30), np.float16)
    probability[0, 5:15, 5:15] = 0.8
    picture = Volume(np.zeros((1, 30, 30), np.float32), None, np.eye(4), "picture")
    (nodule,) = list_nodules(probability, picture).nodules
    assert (nodule.voxels, nodule.volume, nodule.centre) == (100, None, None)


def test_probabilities_of_another_size_are_refused():
    with pytest.raises(REFUSED, match="size"):
        list_nodules(np.zeros((1, 4, 4), np.float16), volume(np.zeros((1, 4, 5), np.int16)))


def test_pieces_count_from_three_millimetres_on():
    """A voxel has 1.12 mm3: 13 of them are a ball of 3.03 mm, 12 one of 2.95 mm."""
    probability = np.zeros((2, 40, 40), np.float16)
    probability[0, 5, 5:18] = probability[0, 20, 5:17] = 1
    found = list_nodules(probability, volume(np.zeros((2, 40, 40), np.int16)))
    assert [nodule.voxels for nodule in found.nodules] == [13]
    assert found.too_small == 1


def test_pixels_of_a_picture_count_from_eight_on():
    probability = np.zeros((1, 30, 30), np.float16)
    probability[0, 5, 5:13] = probability[0, 20, 5:12] = 1
    picture = Volume(np.zeros((1, 30, 30), np.float32), None, np.eye(4), "picture")
    found = list_nodules(probability, picture)
    assert ([nodule.voxels for nodule in found.nodules], found.too_small) == ([8], 1)


def test_a_probability_that_reaches_the_threshold_counts():
    probability = np.zeros((2, 30, 30), np.float16)
    probability[0, 5:15, 5:15] = 0.5
    assert len(list_nodules(probability, volume(np.zeros((2, 30, 30), np.int16))).nodules) == 1


def test_a_nodule_is_told_on_the_slice_that_has_most_of_it():
    probability = np.zeros((6, 30, 40), np.float16)
    probability[2, 10, 20:24], probability[3, 8:13, 20:27], probability[4, 12, 20:22] = 0.6, 0.7, 0.8
    (nodule,) = list_nodules(probability, volume(np.zeros(probability.shape, np.int16))).nodules
    assert (nodule.slice, nodule.row, nodule.column) == (3, 10, 23)
    assert nodule.voxels == 41
    assert nodule.probability == pytest.approx((4 * 0.6 + 35 * 0.7 + 2 * 0.8) / 41, abs=1e-3)
