"""Nodules of several readers, on cases made by hand."""

import numpy as np
import pytest

from torchcaps.apps.lung.nodules import Annotations, Marking, Outline, find_nodules, nodules_of_mask
from torchcaps.apps.lung.nodules.blob import Blob, overlap, union
from torchcaps.apps.lung.nodules.nodules import cluster, consensus

from apps.lung.ct import volume

CT = volume(np.zeros((12, 40, 40), np.int16), spacing=(2.0, 1.0, 1.0))


def box(corner, size):
    return Blob(np.array(corner), np.ones(size, dtype=bool))


def outline(number, row, column, rows, columns):
    """Around a rectangle of pixels in a slice."""
    top, left, bottom, right = row - 1, column - 1, row + rows, column + columns
    points = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return Outline(40.0 + 2.0 * number, True, np.array(points))


def marking(reader, *outlines, malignancy=None):
    return Marking(reader, f"n{reader}", outlines, malignancy)


def nodules(*markings):
    return find_nodules(Annotations("1", 4, markings), CT)


def test_boxes_overlap_where_they_share_a_voxel():
    assert overlap(box((0, 0, 0), (2, 2, 2)), box((1, 1, 1), (2, 2, 2)))
    assert not overlap(box((0, 0, 0), (2, 2, 2)), box((2, 0, 0), (2, 2, 2)))
    hollow = Blob(np.array([0, 0, 0]), np.array([[[1, 0], [0, 0]]], dtype=bool))
    assert not overlap(hollow, box((0, 1, 1), (1, 1, 1)))


def test_a_union_holds_the_voxels_of_both():
    joined = union([box((0, 0, 0), (1, 2, 2)), box((0, 4, 4), (1, 1, 1))])
    assert joined.inside.sum() == 5
    assert joined.inside.shape == (1, 5, 5)


def test_chains_of_overlap_are_one_nodule_and_distant_ones_another():
    chain = [box((0, 0, 3 * number), (1, 4, 4)) for number in range(3)]
    apart = box((8, 30, 30), (2, 4, 4))
    assert cluster([chain[0], apart, chain[2], chain[1]], CT) == [[0, 2, 3], [1]]


def test_near_ones_are_one_nodule_even_without_overlap():
    """Middles are 4 mm apart: less than the radius of a ball of 512 mm3 (4.96), more than that of 8 mm3."""
    large = [box((0, 0, 0), (2, 16, 8)), box((2, 0, 0), (2, 16, 8))]
    assert cluster(large, CT) == [[0, 1]]
    small = [box((0, 0, 0), (1, 2, 2)), box((2, 0, 0), (1, 2, 2))]
    assert cluster(small, CT) == [[0], [1]]
    flat = [box((0, 0, 0), (1, 8, 8)), box((2, 0, 0), (1, 8, 8))]  # 128 mm3: a radius of 3.13
    assert cluster(flat, CT) == [[0], [1]]
    unlike = [box((0, 0, 0), (2, 16, 8)), box((2, 7, 3), (1, 2, 2))]  # the smaller one says what is near
    assert cluster(unlike, CT) == [[0], [1]]


@pytest.mark.parametrize(("readers", "needed"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_half_of_the_readers_are_enough(readers, needed):
    whole, core = box((0, 0, 0), (1, 3, 3)), box((0, 1, 1), (1, 1, 1))
    for number in range(1, readers + 1):
        agreed = consensus([whole] * number + [core] * (readers - number))
        assert (agreed.inside.sum() == 9) == (number >= needed)


def test_readers_who_agree_on_nothing_have_no_consensus():
    apart = [box((0, 0, 3 * number), (1, 1, 1)) for number in range(3)]
    assert consensus(apart) is None


def test_outlines_of_readers_become_nodules_with_size_and_score():
    one = [marking(r, outline(3, 5, 5, 4, 4), outline(4, 5, 5, 4, 4), malignancy=r + 1) for r in range(3)]
    shifted = marking(3, outline(3, 7, 5, 4, 4), malignancy=5)
    small = marking(0, Outline(44.0, True, np.array([(30, 30)])))
    other = marking(1, outline(9, 20, 20, 3, 3))
    found = nodules(*one, shifted, small, other)
    assert [each.readers for each in found] == [4, 1]
    first, second = found
    np.testing.assert_array_equal(first.voxels.corner, (3, 5, 5))
    assert first.voxels.inside.shape == (2, 4, 4)
    assert first.volume_mm3 == 2 * 16 * 2.0
    assert first.diameter_mm == pytest.approx((6 * 64 / np.pi) ** (1 / 3))
    assert first.malignancy == 2.5
    assert second.malignancy is None


def test_a_reader_who_marks_a_nodule_in_two_parts_counts_once():
    whole = [marking(r, outline(2, 5, 5, 4, 8)) for r in (0, 1)]
    halves = [marking(2, outline(2, 5, 5, 4, 3)), marking(2, outline(2, 5, 9, 4, 4))]
    (found,) = nodules(*whole, *halves)
    assert found.readers == 3
    assert found.voxels.inside.sum() == 32


def test_parts_of_a_mask_are_nodules():
    mask = np.zeros(CT.hounsfield.shape, dtype=bool)
    mask[2:4, 5:8, 5:8] = True
    mask[4, 8, 8] = True  # touches by a corner
    mask[9, 30, 30] = True
    first, second = nodules_of_mask(mask, CT)
    assert (first.voxels.inside.sum(), second.voxels.inside.sum()) == (19, 1)
    np.testing.assert_allclose(second.voxels.middle, (9, 30, 30))
