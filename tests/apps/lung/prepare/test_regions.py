"""Regions around nodules, in the middle of slices and at their borders."""

import numpy as np
import pytest

from torchcaps.apps.lung import window
from torchcaps.apps.lung.nodules import nodules_of_mask
from torchcaps.apps.lung.prepare.regions import cut_regions

from apps.lung.ct import volume


def made(shape, places):
    """A volume whose every voxel is another value, with squares of 5x5 pixels at (slice, row, column)."""
    values = np.random.default_rng(0).integers(-1000, 400, shape).astype(np.int16)
    mask = np.zeros(shape, dtype=bool)
    for number, row, column in places:
        mask[number, max(row, 0) : row + 5, max(column, 0) : column + 5] = True
    return volume(values), mask


def regions(shape, places, key="p 0"):
    ct, mask = made(shape, places)
    return ct, mask, [r for n in nodules_of_mask(mask, ct) for r in cut_regions(ct, n, mask, key=key)]


@pytest.mark.parametrize("place", [(1, 100, 125), (0, 0, 0), (2, 195, 235), (1, -2, 237)], ids=str)
def test_a_region_shows_the_slice_and_all_of_its_nodule(place):
    ct, mask, (region,) = regions((3, 200, 240), [place])
    assert region.image.shape == region.mask.shape == (128, 128)
    rows, columns = slice(region.row, region.row + 128), slice(region.column, region.column + 128)
    expected = (window(ct.hounsfield[region.slice, rows, columns]) * 255).round()
    np.testing.assert_array_equal(region.image, expected)
    np.testing.assert_array_equal(region.mask, mask[region.slice, rows, columns])
    assert region.mask.any()


def test_regions_hold_nodules_at_the_border_whole():
    _, mask, found = regions((1, 512, 512), [(0, 0, 0), (0, 507, 507), (0, 250, 507)])
    assert [region.mask.sum() for region in found] == [25, 25, 25]
    assert mask.sum() == 75


def test_a_slice_smaller_than_the_region_is_padded_with_air():
    ct, mask, (region,) = regions((1, 20, 24), [(0, 6, 6)])
    np.testing.assert_array_equal(region.image[:20, :24], (window(ct.hounsfield[0]) * 255).round())
    assert not region.image[20:].any()
    assert not region.image[:, 24:].any()
    assert region.mask.sum() == mask.sum()


def test_slices_that_show_little_of_a_nodule_have_no_region():
    ct, mask = made((3, 64, 64), [(1, 20, 20)])
    mask[0, 20, 20:28], mask[2, 20, 20:27] = True, True  # 8 and 7 pixels
    (nodule,) = nodules_of_mask(mask, ct)
    assert [region.slice for region in cut_regions(ct, nodule, mask, key="k")] == [0, 1]


def test_a_region_shows_other_nodules_too():
    _, _, found = regions((1, 64, 64), [(0, 20, 20), (0, 30, 30)])
    assert [region.mask.sum() for region in found] == [50, 50]


def test_nodules_lie_away_from_the_middle_by_a_draw_of_their_own():
    corners = {key: regions((1, 300, 300), [(0, 150, 150)], key=key)[2][0].row for key in map(str, range(20))}
    assert corners == {
        key: regions((1, 300, 300), [(0, 150, 150)], key=key)[2][0].row for key in map(str, range(20))
    }
    assert len(set(corners.values())) > 10


def test_nodules_lie_up_to_24_of_128_pixels_from_the_middle_to_all_sides():
    away = []
    for key in map(str, range(60)):
        _, _, (region,) = regions((1, 400, 400), [(0, 198, 148)], key=key)
        away.append((200 - (region.row + 64), 150 - (region.column + 64)))
    rows, columns = zip(*away, strict=True)
    assert all(-24 <= min(each) <= -18 and 18 <= max(each) <= 24 for each in (rows, columns))
