"""Boxes around the lungs."""

import numpy as np

from torchcaps.apps.lung.segment.lungs import lung_box, lung_field

from apps.lung.ct import chest


def test_the_box_holds_both_lungs_and_little_else():
    hounsfield = chest(10, 128)
    field = lung_field(hounsfield)
    assert [bool(each.any()) for each in field] == [False] * 2 + [True] * 6 + [False] * 2
    box = lung_box(field, (128, 128), margin=4)
    rows, columns = np.nonzero(hounsfield[5] == -850)
    assert box.top <= rows.min() < box.top + 9
    assert box.bottom - 9 < rows.max() + 1 <= box.bottom
    assert box.left <= columns.min() < box.left + 9
    assert box.right - 9 < columns.max() + 1 <= box.right


def test_a_margin_stays_within_the_slice():
    assert lung_box(lung_field(chest(6, 64)), (64, 64), margin=100) == (0, 64, 0, 64)


def test_lungs_that_reach_the_edge_are_found():
    inside = chest(6, 128)[:, 32:96, 8:64]  # cut so that a lung touches three sides
    cells = inside[3].reshape(16, 4, 14, 4)
    is_lung, is_tissue = (cells == -850).all((1, 3)), (cells == 40).all((1, 3))
    found = lung_field(inside)[3]
    assert found[is_lung].all()
    assert not found[is_tissue].any()


def test_a_small_lung_beside_a_large_one_is_found():
    hounsfield = chest(10, 128)
    right = hounsfield[:, :, 64:]
    right[:, :72][right[:, :72] == -850] = 40  # a third of it is left
    share = (hounsfield[5, :, 64:] == -850).sum() / (hounsfield[5, :, :64] == -850).sum()
    assert 0.1 < share < 0.5
    assert lung_field(hounsfield)[5, :, 16:].any()


def test_a_speck_of_air_above_a_lung_is_none_of_it():
    hounsfield = chest(10, 128)
    hounsfield[1, 64:68, 36:40] = -900  # one cell in tissue, on top of the left lung
    assert not lung_field(hounsfield)[1].any()


def test_a_box_in_a_slice_that_is_not_square_stays_within_it():
    field = np.ones((1, 10, 25), bool)  # cells of 4 pixels
    assert lung_box(field, (40, 100), margin=9) == (0, 40, 0, 100)


def test_without_lungs_everything_is_looked_at():
    for value in (-1000, 40):
        assert lung_field(np.full((3, 20, 30), value, np.int16)).all()


def test_gas_in_the_bowel_is_left_out():
    hounsfield = chest(40, 128)
    hounsfield[-2:] = hounsfield[0]
    hounsfield[-1, 60:72, 60:72] = -900
    assert not lung_field(hounsfield)[-1].any()


def test_slices_without_lungs_have_no_box():
    assert lung_box(lung_field(chest(10, 128))[:2], (128, 128), margin=4) is None


def pockets(*pieces, outside=40):
    """One slice of 128x128 pixels, that is 32x32 cells; pieces are (row, column, rows, columns) in cells."""
    hounsfield = np.full((1, 128, 128), outside, np.int16)
    for (row, column, rows, columns), value in pieces:
        hounsfield[0, 4 * row : 4 * (row + rows), 4 * column : 4 * (column + columns)] = value
    return hounsfield


def test_dense_lungs_are_found_and_soft_tissue_is_none():
    field = lung_field(pockets(((4, 4, 10, 10), -410), ((18, 18, 10, 10), -390)))[0]
    assert field[4:14, 4:14].all()
    assert field.sum() == 100


def test_air_at_the_edge_is_outside_of_the_body_only_where_it_is_as_empty_as_air():
    for value, is_lung in ((-920, True), (-940, False)):
        field = lung_field(pockets(((0, 4, 10, 10), value), ((18, 18, 10, 10), -850)))[0]
        assert field[18:28, 18:28].all()
        assert field[0:10, 4:14].all() == field[0:10, 4:14].any() == is_lung
    assert lung_field(pockets(((2, 4, 10, 10), -1000)))[0].sum() == 100  # inside, whatever its mean


def test_pockets_count_from_a_five_hundredth_of_a_slice_on():
    """Of 1,024 cells, 3 are enough and 2 are noise; without any lung all is looked at."""
    assert lung_field(pockets(((4, 4, 1, 3), -850)))[0].sum() == 3
    assert lung_field(pockets(((4, 4, 1, 2), -850)))[0].sum() == 1024


def test_bodies_of_air_count_from_a_twentieth_of_the_largest_on():
    for cells, total in ((5, 105), (4, 100)):
        assert lung_field(pockets(((4, 4, 10, 10), -850), ((20, 4, 1, cells), -850)))[0].sum() == total
