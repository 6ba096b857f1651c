"""Regions that show no nodule."""

import numpy as np

from torchcaps.apps.lung.nodules import nodules_of_mask
from torchcaps.apps.lung.prepare import Marked
from torchcaps.apps.lung.prepare.negatives import cut_negatives, soft_cells
from torchcaps.apps.lung.prepare.sources import _cut_patient

from apps.lung.ct import chest, volume


def test_soft_tissue_is_looked_for_inside_of_the_lungs_and_at_their_walls():
    side = 128
    vessel = (5, 64, 38, 6)
    drawn = volume(chest(10, side, [vessel]))
    cells = soft_cells(drawn)
    grey = drawn.hounsfield[tuple((cells * [1, 4, 4] + [0, 2, 2]).T)]
    assert np.mean(grey > -400) > 0.8  # cells at a border hold both
    assert set(cells[:, 0]) == set(range(2, 8))  # slices with lungs
    assert any((cell[1:] == [16, 9]).all() for cell in cells)  # the vessel
    assert not any((cell[1:] == [0, 0]).all() for cell in cells)  # air beside the body


def test_no_region_shows_a_voxel_of_a_nodule():
    drawn = volume(chest(10, 320))
    everything = np.zeros(drawn.hounsfield.shape, bool)
    everything[:, :, :160] = True
    found = list(cut_negatives(drawn, everything, count=5, key="a"))
    assert len(found) == 5
    assert all(not region.mask.any() and region.column >= 160 for region in found)
    again = list(cut_negatives(drawn, everything, count=5, key="a"))
    assert [(one.slice, one.row, one.column) for one in found] == [
        (two.slice, two.row, two.column) for two in again
    ]


def test_where_nodules_or_no_lungs_are_everywhere_there_are_none():
    drawn = volume(chest(10, 64))
    everything = np.ones(drawn.hounsfield.shape, bool)
    assert not list(cut_negatives(drawn, everything, count=3, key="a"))
    flesh = volume(np.full((4, 64, 64), 40, np.int16))
    assert not list(cut_negatives(flesh, ~everything[:4], count=3, key="a"))


def test_regions_lie_around_the_tissue_that_they_are_cut_for():
    """Lung everywhere but for one cell of tissue, 24 pixels of 128 around which a region may lie."""
    hounsfield = np.full((3, 400, 400), -850, np.int16)
    hounsfield[1, 200:204, 148:152] = 40
    nothing = np.zeros(hounsfield.shape, bool)
    (region,) = cut_negatives(volume(hounsfield), nothing, count=1, key="a")
    assert region.slice == 1
    assert abs(region.row + 64 - 202) <= 24
    assert abs(region.column + 64 - 150) <= 24
    assert (region.image == region.image.max()).sum() == 16


def test_tissue_farther_than_two_cells_from_the_lungs_is_left_alone():
    hounsfield = np.full((1, 128, 128), 40, np.int16)
    hounsfield[0, 40:80, 40:80] = -850  # cells 10 to 19
    rows, columns = soft_cells(volume(hounsfield))[:, 1:].T
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (8, 21, 8, 21)
    assert len(rows) == 14**2 - 10**2


def test_all_scans_of_a_patient_together_have_as_many_regions_without_a_nodule_as_asked():
    scan = volume(chest(10, 160))
    mask = np.zeros(scan.hounsfield.shape, bool)
    mask[4, 78:83, 40:45] = mask[5, 78:83, 110:115] = True  # slices 2, 3, 6 and 7 show lungs alone
    scans = [Marked(scan, nodules_of_mask(mask, scan), first) for first in (0, 2)]
    cuts = _cut_patient(lambda: iter(scans), 0.5).cuts
    with_nodule = [cut for cut in cuts if cut.nodule is not None]
    assert {cut.nodule for cut in with_nodule} == {0, 1, 2, 3}
    assert (len(with_nodule), len(cuts) - len(with_nodule)) == (4, 2)
