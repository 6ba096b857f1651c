"""Measures of masks against MONAI and against numbers computed on paper."""

import math
import warnings

import numpy as np
import pytest

from torchcaps.apps.lung.measure import hausdorff_95, measure

from refusal import REFUSED

SPACING = (2.5, 0.7, 0.9)


def two_masks(seed, shape=(6, 14, 15)):
    """Two overlapping lumps, one of which may touch the edge."""
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    masks = []
    for _ in range(2):
        centre = np.array(shape) / 2 + random.uniform(-2, 2, 3)
        masks.append((((grid - centre) / random.uniform(2, 5, 3)) ** 2).sum(-1) < 1)
    return masks


@pytest.mark.parametrize("seed", range(4))
def test_dice_and_hd95_equal_those_of_monai(seed):
    metrics = pytest.importorskip("monai.metrics")
    import torch

    predicted, truth = two_masks(seed)
    one_hot = [torch.from_numpy(each)[None, None].float() for each in (predicted, truth)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dice = float(metrics.compute_dice(*one_hot))
        hd95 = float(metrics.compute_hausdorff_distance(*one_hot, percentile=95, spacing=SPACING))
    found = measure(predicted, truth, SPACING)
    assert found.dice == pytest.approx(dice, abs=1e-6)
    assert found.hd95 == pytest.approx(hd95, rel=1e-5)


def test_measures_by_hand():
    truth, predicted = np.zeros((1, 4, 4), bool), np.zeros((1, 4, 4), bool)
    truth[0, 1, :2] = True
    predicted[0, 1, 1:4] = True
    found = measure(predicted, truth, (2.0, 1.0, 3.0))
    assert found.dice == pytest.approx(2 / 5)
    assert found.iou == pytest.approx(1 / 4)
    assert found.volume_error == pytest.approx(0.5)
    assert (found.volume, found.predicted_volume) == (12.0, 18.0)


def test_distances_are_millimetres_of_each_axis():
    truth = np.zeros((9, 9, 9), bool)
    truth[4, 4, 4] = True
    for axis, step in enumerate(SPACING):
        moved = np.roll(truth, 2, axis=axis)
        assert hausdorff_95(moved, truth, SPACING) == pytest.approx(2 * step)


def test_empty_masks_agree_and_one_empty_mask_does_not():
    empty, full = np.zeros((2, 3, 3), bool), np.ones((2, 3, 3), bool)
    nothing = measure(empty, empty, SPACING)
    assert (nothing.dice, nothing.iou, nothing.hd95, nothing.volume_error) == (1, 1, 0, 0)
    missed, invented = measure(empty, full, SPACING), measure(full, empty, SPACING)
    assert missed.dice == invented.dice == missed.iou == 0
    assert missed.volume_error == -1
    assert all(math.isnan(each) for each in (missed.hd95, invented.hd95, invented.volume_error))


def test_a_mask_of_another_size_is_refused():
    with pytest.raises(REFUSED):
        measure(np.zeros((2, 3, 3), bool), np.zeros((2, 3, 4), bool), SPACING)
    with pytest.raises(REFUSED, match="spacing"):
        measure(np.zeros((2, 3, 3), bool), np.zeros((2, 3, 3), bool), (1.0, 0.0, 1.0))
