"""The spread of votes, and what it says of errors."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.apps.pose.uncertainty import Judged, coverage, fit_calibration, vote_spread
from torchcaps.core import UserError
from torchcaps.models import create_model


@pytest.mark.parametrize(
    "settings",
    [{}, {"votes": "matrix", "routing": "em"}, {"routing": {"name": "em_rotation", "average": "markley"}}],
)
def test_the_spread_is_the_weighted_variance_of_the_votes(settings):
    network = create_model("em_posenet_tiny_test", **settings).double()
    output = network(torch.rand(4, 3, 16, 16, dtype=torch.float64), return_routing=True)
    winners = torch.tensor([0, 2, 1, 1])
    (trace,) = output.layers
    found = vote_spread(network, trace, winners)
    weight = network.classes.weight
    for sample, winner in enumerate(winners.tolist()):
        mean, total, mass = trace.routed.poses[sample, winner], 0.0, 0.0
        for child, pose in enumerate(trace.children.poses[sample]):
            vote = pose @ weight[child, :, winner]
            if settings.get("routing") != "em" and vote @ mean < 0:
                vote = -vote
            share = trace.routed.coupling[sample, child, winner] * trace.children.activations[sample, child]
            total, mass = total + share * (vote - mean).square().sum() / 4, mass + share
        assert_close(found[sample], total / mass)


def test_the_spread_needs_couplings():
    network = create_model("em_posenet_tiny_test")
    (trace,) = network(torch.rand(1, 3, 16, 16), return_routing=True).layers
    bare = trace._replace(routed=trace.routed._replace(coupling=None))
    with pytest.raises(UserError, match="return_routing=True"):
        vote_spread(network, bare, torch.tensor([0]))


def drawn(count, seed):
    """Errors that grow with the spread of votes."""
    rng = torch.Generator().manual_seed(seed)
    spreads = torch.rand(count, generator=rng)
    return Judged(spreads, 30 * spreads * torch.rand(count, generator=rng))


def test_nine_in_ten_new_images_are_within_the_stated_angle():
    calibration = fit_calibration(drawn(2000, 0))
    assert coverage(calibration, drawn(2000, 1)) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("count", [12, 24, 50])
def test_few_validation_images_do_not_promise_too_much(count):
    judged = [drawn(count, seed) for seed in range(40)]
    shares = [coverage(fit_calibration(each), drawn(500, 100)) for each in judged]
    assert sum(shares) / len(shares) > 0.89


def test_larger_spreads_state_larger_angles():
    calibration = fit_calibration(drawn(2000, 0))
    stated = [calibration.at(spread) for spread in (0.05, 0.5, 0.95)]
    assert stated == sorted(stated)
    assert stated[0][1] < stated[2][1] / 3
    assert all(median < within for median, within in stated)


def test_few_images_make_few_groups():
    calibration = fit_calibration(drawn(7, 0))
    assert len(calibration.median) == 1
    assert calibration.edges == ()


def test_errors_that_fall_by_chance_do_not_state_smaller_angles():
    falling = Judged(torch.arange(40.0), torch.linspace(40, 1, 40))
    calibration = fit_calibration(falling)
    assert len(calibration.median) == 4
    assert calibration.median == (35.5,) * 4  # of the first ten
    assert calibration.within == (40.0,) * 4


def test_the_last_image_of_a_group_is_told_what_its_group_is():
    judged = Judged(torch.arange(20.0), torch.tensor([3.0] * 10 + [5.0] * 10))
    calibration = fit_calibration(judged)
    assert calibration.edges == (9.0,)
    assert calibration.at(9.0) == (3.0, 3.0)
    assert calibration.at(9.1) == (5.0, 5.0)
    assert coverage(calibration, judged) == 1  # an error of the stated angle is within it
