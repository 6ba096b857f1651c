import math

import pytest
import torch

from torchcaps.apps.uav import AbBrief
from torchcaps.apps.uav.describe.describe import _opponent_colours


@pytest.mark.parametrize(
    ("colour", "expected"),
    [  # a* and b* of the corners of sRGB under D65 (Lindbloom)
        ((1.0, 0.0, 0.0), (80.11, 67.22)),
        ((0.0, 1.0, 0.0), (-86.18, 83.18)),
        ((0.0, 0.0, 1.0), (79.20, -107.86)),
        ((1.0, 1.0, 1.0), (0.0, 0.0)),
        ((0.01, 0.01, 0.01), (0.0, 0.0)),
    ],
)
def test_opponent_colours_are_those_of_cielab(colour, expected):
    found = _opponent_colours(torch.tensor(colour).view(1, 3, 1, 1)).flatten()
    assert found.tolist() == pytest.approx(expected, abs=0.2)


def test_opponent_colours_have_no_step_between_dark_and_bright():
    for channel in range(3):
        ramp = torch.zeros(1, 3, 1, 1001)
        ramp[:, channel] = torch.linspace(0, 1, 1001)
        assert _opponent_colours(ramp).diff(dim=3).abs().max() < 0.5


def bits(describer, images):
    return describer(images)[0] > 0


def test_bits_tell_which_of_two_points_is_redder_and_which_is_yellower():
    describer = AbBrief(side=24, size=64)
    x, y, other_x, other_y = describer._points.T
    ramp = torch.linspace(0.2, 0.8, 24)
    redder = torch.stack([ramp.expand(24, 24), torch.full((24, 24), 0.4), torch.full((24, 24), 0.4)])
    is_red = torch.arange(64) % 2 == 0  # bits take turns
    assert torch.equal(bits(describer, redder[None])[is_red], (x > other_x)[is_red])
    yellower = torch.stack([torch.full((24, 24), 0.5), torch.full((24, 24), 0.5), 1 - ramp.expand(24, 24).T])
    assert torch.equal(bits(describer, yellower[None])[~is_red], (y > other_y)[~is_red])


def test_points_lie_around_the_middle_of_a_crop():
    points = AbBrief(side=101, size=512)._points.double()
    assert points.mean(0).tolist() == pytest.approx([50] * 4, abs=3)
    assert points.std(0).tolist() == pytest.approx([101 / 5] * 4, rel=0.1)


def test_the_dot_product_tells_the_share_of_bits_that_differ():
    describer = AbBrief(side=16, size=32)
    one, two = describer(torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    assert one.norm() == pytest.approx(1)
    differ = int(((one > 0) != (two > 0)).sum())
    assert float(one @ two) == pytest.approx(1 - 2 * differ / 32)
    assert math.isclose(float(one.abs().min()), 32**-0.5, rel_tol=1e-6)
