import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.layers import ConvCaps2d, PositionalEM, cast_votes, routed
from torchcaps.layers.em_conv2d import children_of_windows, log_total_per_child
from torchcaps.routing import RoutingShape

IN, OUT, K = 2, 3, 3


def build(stride, **settings):
    routing = PositionalEM(RoutingShape(K * K * IN, OUT, 4), kernel_size=K, stride=stride, **settings)
    layer = ConvCaps2d(
        IN, OUT, 4, 4, kernel_size=K, stride=stride, pose_rows=2, init_std=0.7, routing=routing
    ).double()
    torch.nn.init.normal_(routing.activation_cost)
    torch.nn.init.normal_(routing.vote_cost)
    return layer


def grid(height, width, batch=1):
    poses = torch.randn(batch, height, width, IN, 4, dtype=torch.float64)
    return Capsules(poses, torch.rand(batch, height, width, IN, dtype=torch.float64))


def slow_em_convolution(layer, capsules, stride, iterations):
    """One sample as a dictionary of the pairs that meet; couplings sum to one over all parents of a child."""
    poses, a = capsules.poses[0], capsules.activations[0]
    rows, columns = ((size - K) // stride + 1 for size in poses.shape[:2])
    parents = [(h, w, o) for h in range(rows) for w in range(columns) for o in range(OUT)]
    votes = {}
    for h, w, o in parents:
        for t in range(IN):
            for m in range(K):
                for n in range(K):
                    child = (stride * h + m, stride * w + n, t)
                    matrix = layer.weight[(t * K + m) * K + n, :, o]
                    votes[child, (h, w, o)] = (poses[child].view(2, 2) @ matrix).flatten()
    children = {child for child, _ in votes}
    parents_of = {c: [p for p in parents if (c, p) in votes] for c in children}
    children_of = {p: [c for c in children if (c, p) in votes] for p in parents}
    R = {pair: 1 / len(parents_of[pair[0]]) for pair in votes}
    even_mass = len(children) / len(parents)
    for step in range(iterations):
        mean, variance, x = {}, {}, {}
        for p in parents:
            w = {c: R[c, p] * float(a[c]) for c in children_of[p]}
            mass = sum(w.values()) + 1e-7
            mean[p] = sum(w[c] * votes[c, p] for c in w) / mass
            variance[p] = sum(w[c] * (votes[c, p] - mean[p]) ** 2 for c in w) / mass + 0.1
            cost = (layer.routing.vote_cost[p[2]] + 0.5 * variance[p].log()).sum() * mass / even_mass
            x[p] = (1 - 0.95 ** (step + 1)) * (layer.routing.activation_cost[p[2]] - cost)
        used = R
        R = {}
        for c in children:
            density = {
                p: float(
                    torch.sigmoid(x[p])
                    * torch.exp(-((votes[c, p] - mean[p]) ** 2) / (2 * variance[p])).prod()
                    / torch.sqrt(2 * math.pi * variance[p]).prod()
                )
                for p in parents_of[c]
            }
            total = sum(density.values())
            R |= {(c, p): value / total for p, value in density.items()}
    return mean, x, used


@pytest.mark.parametrize(("stride", "height", "width"), [(1, 4, 5), (2, 6, 5), (3, 6, 7)])
def test_parents_of_all_positions_compete_as_in_the_slow_transcription(stride, height, width):
    layer, capsules = build(stride), grid(height, width)
    with torch.no_grad():
        routed = layer(capsules)
        mean, x, coupling = slow_em_convolution(layer, capsules, stride, 3)
    assert routed.poses[0, ..., 0].numel() == len(mean)
    for (h, w, o), pose in mean.items():
        assert_close(routed.poses[0, h, w, o], pose)
        assert_close(routed.activations[0, h, w, o], torch.sigmoid(x[h, w, o]))
    for ((y, z, t), (h, w, o)), value in coupling.items():
        place = (t * K + y - stride * h) * K + z - stride * w
        assert float(routed.coupling[0, h, w, place, o]) == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_child_gives_one_vote_over_all_windows(stride):
    layer, capsules = build(stride), grid(7, 7, batch=2)
    coupling = layer(capsules).coupling.sum(-1).unflatten(-1, (IN, K, K))
    total = torch.zeros(2, 7, 7, IN, dtype=torch.float64)
    for h in range(coupling.shape[1]):
        for w in range(coupling.shape[2]):
            window = total[:, stride * h : stride * h + K, stride * w : stride * w + K]
            window += coupling[:, h, w].permute(0, 2, 3, 1)
    assert_close(total, torch.ones_like(total))


def test_children_outside_every_window_do_not_count():
    layer, capsules = build(2), grid(6, 6)
    moved = Capsules(capsules.poses.clone(), capsules.activations)
    moved.poses[:, 5], moved.poses[:, :, 5] = 100, 100
    assert_close(layer(capsules).poses, layer(moved).poses)


def test_one_window_is_plain_em_routing():
    layer, capsules = build(1), grid(K, K, batch=2)
    plain = ConvCaps2d(IN, OUT, 4, 4, kernel_size=K, pose_rows=2, routing="em").double()
    plain.load_state_dict(layer.state_dict())
    for mine, theirs in zip(layer(capsules), plain(capsules), strict=True):
        assert_close(mine, theirs)


def test_logarithms_of_totals_stay_finite():
    values = torch.full((1, 2, 2, 1, 3, 3), -1e30, requires_grad=True)
    total = log_total_per_child(values, stride=2)
    total.sum().backward()
    assert total.isfinite().all()
    assert values.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences():
    layer, capsules = build(2, iterations=2), grid(5, 5)

    def outputs(poses, activations):
        routed = layer(Capsules(poses, activations))
        return routed.poses, routed.activations

    assert torch.autograd.gradcheck(outputs, [x.requires_grad_() for x in capsules], fast_mode=True)


def test_votes_of_matrix_poses_are_matrix_products():
    poses, weight = torch.randn(2, 6, 16), torch.randn(6, 4, 3, 4)
    votes = cast_votes(poses, weight, pose_rows=4)
    assert_close(votes[1, 2, 1].view(4, 4), poses[1, 2].view(4, 4) @ weight[2, :, 1])
    assert ConvCaps2d(2, 3, 16, 16, kernel_size=3, pose_rows=4).weight.numel() == 9 * 2 * 3 * 16


def test_a_batch_in_parts_learns_what_it_learns_whole(monkeypatch):
    def learn():
        torch.manual_seed(0)
        layer, capsules = build(2), grid(5, 5, batch=5)
        inputs = [values.requires_grad_() for values in capsules]
        parents = layer(Capsules(*inputs))
        total = sum((field * torch.randn_like(field)).sum() for field in parents)
        return [*parents, *torch.autograd.grad(total, [*inputs, *layer.parameters()])]

    whole = learn()
    calls = []
    cast = routed.cast_votes
    monkeypatch.setattr(routed, "cast_votes", lambda *a: calls.append(len(a[0])) or cast(*a))
    monkeypatch.setattr("torchcaps.layers.em_conv2d._SAMPLES_AT_ONCE", 2)
    assert_close(learn(), whole)
    assert calls == [2, 2, 1, 1, 2, 2]  # the backward pass goes the other way, and votes again


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (2, 2), (2, 3), (1, 2)])
def test_an_even_split_gives_each_parent_its_share_of_the_children_that_are_seen(kernel, stride):
    windows, types, out_types = (4, 3), 5, 2
    seen = [
        len(children_of_windows(count, kernel, stride, torch.device("cpu")).unique()) for count in windows
    ]
    shape = (*windows, types * kernel**2, out_types)
    routing = PositionalEM(RoutingShape(shape[2], out_types, 4), kernel_size=kernel, stride=stride)
    assert routing.even_mass(shape) == pytest.approx(types * seen[0] * seen[1] / (4 * 3 * out_types))


@pytest.mark.parametrize("backend", ["torch", "fused"])
def test_costs_of_one_parent_are_not_spread_over_several(backend):
    routing = PositionalEM(RoutingShape(K * K * IN, 1, 4), kernel_size=K, stride=1)
    layer = ConvCaps2d(IN, OUT, 4, 4, kernel_size=K, pose_rows=2, routing=routing, backend=backend).double()
    with torch.no_grad(), pytest.raises(UserError, match="built for sizes"):
        layer(grid(4, 4), return_coupling=False)
