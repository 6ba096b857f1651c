import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcaps.apps.uav import AbBrief, CompileSettings, Matching, Terrain, measure_matching
from torchcaps.apps.uav.describe.matching import Pairing, _places
from torchcaps.apps.uav.filter import ratio_likelihood
from torchcaps.core import UserError
from torchcaps.data import SeasonStack


@pytest.fixture(scope="module")
def stack():
    return Terrain(seed=4).draw(3000.0, 1200.0, 10.0, ("summer", "winter"))


def cut_off(stack, first, *, is_said=True):
    """The stack, which shows nothing from a column on, and may say that it is without data there."""
    images, known = stack.images.copy(), stack.known.copy()
    images[..., first:], known[..., first:] = 0, not is_said
    return replace(stack, images=images, known=known)


@pytest.mark.parametrize("is_said", [True, False])
def test_matches_are_measured_where_the_map_shows_ground(stack, is_said):
    found = measure_matching(AbBrief(side=16, size=32), [cut_off(stack, 275, is_said=is_said)])
    assert np.mean(np.array(found.same) == 0) < 0.05  # black ground is the same everywhere
    assert np.mean(np.array(found.other) == 0) < 0.01


def test_a_map_with_too_little_ground_on_all_dates_is_refused(stack):
    with pytest.raises(UserError, match="show too little of the ground"):
        measure_matching(AbBrief(side=16, size=32), [cut_off(stack, 230)])


def test_a_map_too_small_for_its_crops_is_refused_with_both_ways_to_make_them_smaller(stack):
    with pytest.raises(UserError, match=r"no room for crops of 90 .*--side.*model\.image_size"):
        measure_matching(AbBrief(side=90, size=32), [stack])


class RedAngle:
    """Describes a crop by an angle, which grows with its mean red."""

    side, size, name, device = 4, 2, "red angle", torch.device("cpu")

    def __call__(self, crops):
        angle = crops[:, 0].mean((1, 2)) * math.pi / 2
        return torch.stack([angle.cos(), angle.sin()], dim=1)


def ramp(dates=1):
    """Maps whose red grows by one from column to column, with more red on each later date."""
    images = np.zeros((dates, 3, 200, 200), np.uint8)
    images[:, 0] = np.arange(200) + 10 * np.arange(dates)[:, None, None]
    names = tuple(map(str, range(dates)))
    return SeasonStack(images, images[:, 0] >= 0, names, 0.0, 2000.0, 10.0, "EPSG:32633")


def test_pairs_are_of_one_place_and_of_places_that_are_apart():
    pairing = Pairing(cell=40.0)
    found = measure_matching(RedAngle(), [ramp()], pairing)
    places = _places(ramp(), RedAngle.side, np.random.default_rng(0))[:, :2]
    before = np.roll(places, 1, axis=0)
    apart = np.linalg.norm(places - before, axis=1) > 80  # two cells
    assert 0 < len(found.other) == apart.sum() < len(found.same) == len(places)
    angles = np.abs(places - before)[apart, 0] / 10 / 255 * math.pi / 2  # a ramp of one level for 10 m
    one_cell = 2 / 255 * math.pi / 2  # by so much at most the second of a pair lies aside
    assert np.array(found.other) == pytest.approx(2 * np.sin(angles / 2), abs=1.01 * one_cell)
    assert 0.8 * one_cell < max(found.same) <= 1.01 * one_cell


def test_pairs_are_of_two_dates():
    one_level = math.pi / 2 / 255
    found = np.array(measure_matching(RedAngle(), [ramp(3)], Pairing(cell=0.1)).same) / one_level
    assert set(found.round().tolist()) == {10, 20}


def test_pairs_lie_within_a_voxel_of_a_map_of_the_thesis():
    settings = CompileSettings()
    assert Pairing().cell == settings.cell
    assert Pairing().heading_step == pytest.approx(2 * math.pi / settings.headings)


def test_crops_of_pairs_stay_on_the_map_in_any_heading():
    places = _places(ramp(), 16, np.random.default_rng(0))
    corners = math.sqrt(2) * 80  # metres from the middle of 16 pixels of 10 m
    assert places[:, 0].min() >= 1600 + corners
    assert places[:, :2].max() <= 2000 - corners
    assert places[:, 1].min() >= corners


def test_a_crop_shows_pixels_times_metres_of_ground():
    matching = Matching(pixel=0.5, side=128, same=(0.1, 0.2), other=(1.0, 1.1))
    assert matching.metres == 64
    matching.check_metres(64.0)
    with pytest.raises(UserError, match="crops of 65 m"):
        matching.check_metres(65.0)


def test_a_ratio_counts_with_the_power_of_the_calibration():
    draw = np.random.default_rng(0)
    same, other = draw.normal(0.8, 0.1, 50), draw.normal(1.2, 0.1, 50)
    found = Matching(0.5, 128, tuple(same.tolist()), tuple(other.tolist())).likelihood("ratio")
    assert found.weights == pytest.approx(ratio_likelihood(same, other, 0.7).weights)  # see docs/uav.md
