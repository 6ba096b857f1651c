"""Units of votes: they change nothing below 1e8, and keep squares finite above."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from torchcaps.routing import em_routing, variational_bayes_routing
from torchcaps.routing.unit import in_units, pose_unit, room_for_products

from routing.contract import OUT_CAPS, draw

POWERS = st.integers(-30, 30)


@given(POWERS, POWERS)
@settings(max_examples=30, deadline=None)
def test_votes_below_1e8_are_their_own_unit_and_others_have_finite_squares(first, second):
    votes = draw(1, 3, 2, 4, dtype=torch.float32)
    votes[:, :, 0] *= 10.0**first
    votes[:, :, 1] *= 10.0**second
    measured = in_units(votes)
    assert measured.votes.square().sum(-3).isfinite().all()
    small = votes.abs().amax(-3) < 1e8
    assert (measured.unit[small] == 1).all()
    assert torch.equal(measured.votes.movedim(-3, 0)[:, small], votes.movedim(-3, 0)[:, small])
    assert_close(measured.votes * measured.unit.unsqueeze(-3), votes)


def test_infinite_votes_become_no_number():
    votes = torch.tensor([math.inf, 1.0]).view(1, 2, 1, 1)
    assert in_units(votes).votes[0, 0].isnan().all()


def test_an_absent_child_with_a_large_vote_is_ignored():
    votes, present = draw(1, 6, OUT_CAPS, 5, dtype=torch.float32), torch.tensor([[1.0, 1, 1, 1, 1, 0]])
    moved = votes.clone()
    moved[:, 5] = 1e14
    zeros = torch.zeros(OUT_CAPS)
    for route in (em_routing, variational_bayes_routing):
        first, second = (route(v, present, activation_cost=zeros, vote_cost=zeros) for v in (votes, moved))
        assert_close(first.poses, second.poses)
        assert_close(first.activations, second.activations)


def test_each_pose_has_its_own_unit():
    poses = torch.tensor([[[1e9, -3e9], [0.5, -9e7], [1e20, 1e30]]])
    units = pose_unit(poses)
    assert units.flatten().tolist() == [4e9, 1.0, torch.tensor(1e20).add(1e30).item()]
    assert (poses / units).square().isfinite().all()


@given(POWERS, POWERS)
@settings(max_examples=30, deadline=None)
def test_products_have_room_and_small_ones_are_left_alone(first, second):
    votes = draw(1, 3, 2, 4, dtype=torch.float32) * 10.0**first
    poses = draw(1, 2, 4, seed=1, dtype=torch.float32) * 10.0**second
    room = room_for_products(votes, poses)
    products = torch.einsum("...iod,...od->...io", votes, poses * room)
    assert products.isfinite().all()
    assert first + second > 30 or (room == 1).all()
