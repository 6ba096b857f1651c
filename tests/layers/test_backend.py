"""The choice between the plain path and a fused kernel, on a CPU."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.layers import ConvCaps2d, FcCaps, LocalConvCaps2d, fc
from torchcaps.layers.backend import checked_backend, takes_kernel
from torchcaps.routing import DynamicRouting, RoutingShape

from refusal import REFUSED


def test_a_reason_stops_auto_and_is_an_error_for_fused():
    assert takes_kernel("auto", lambda: None)
    assert takes_kernel("fused", lambda: None)
    assert not takes_kernel("auto", lambda: "it is Sunday")
    assert not takes_kernel("torch", lambda: pytest.fail("nobody should ask"))
    with pytest.raises(UserError, match="it is Sunday"):
        takes_kernel("fused", lambda: "it is Sunday")


def test_an_unknown_backend_is_named():
    with pytest.raises(REFUSED, match="backend"):
        checked_backend("quick")
    with pytest.raises(REFUSED, match="backend"):
        ConvCaps2d(2, 3, 4, 5, kernel_size=3, backend="quick")
    with pytest.raises(REFUSED, match="backend"):
        LocalConvCaps2d(2, 3, 4, 5, kernel_size=3, backend="quick")


@pytest.mark.parametrize(("batch", "matrices", "expected"), [(5, 12, True), (6, 12, False), (1, 2, False)])
def test_few_poses_to_a_matrix_are_routed_plain(batch, matrices, expected):
    layer = FcCaps(12, 3, 4, 5, matrices=matrices)
    poses = torch.rand(batch, 12, 4)
    children = Capsules(poses, poses.norm(dim=-1))
    reason = layer.fallback_reason(children, return_coupling=False)
    assert (reason is not None and "faster on a CPU" in reason) == expected
    assert (layer(children, return_coupling=False).coupling is not None) == expected
    layer.backend = "fused"
    assert layer(children, return_coupling=False).coupling is None


@pytest.mark.parametrize("settings", [{}, {"padding": 1, "stride": 2}, {"share_types": True}])
@pytest.mark.parametrize("gradient", ["full", "last"])
def test_a_convolutional_layer_answers_the_same_fused(settings, gradient):
    torch.manual_seed(0)
    routing = {"name": "dynamic", "gradient": gradient}
    layer = ConvCaps2d(2, 3, 4, 5, kernel_size=3, init_std=0.5, routing=routing, **settings).double()
    poses = torch.randn(2, 5, 6, 2, 4, dtype=torch.float64, requires_grad=True)
    children = Capsules(poses, torch.linalg.vector_norm(poses, dim=-1))
    results = []
    for backend in ("torch", "fused"):
        layer.backend = backend
        routed = layer(children, return_coupling=False)
        loss = routed.poses.square().sum() + routed.activations.sin().sum()
        gradients = torch.autograd.grad(loss, [poses, *layer.parameters()], retain_graph=True)
        results.append([routed.poses, routed.activations, *gradients])
    assert routed.coupling is None
    assert layer.fallback_reason(children, return_coupling=False) is None
    assert_close(*results)


@pytest.mark.parametrize("pose_rows", [1, 2])
def test_scaled_distance_on_a_cpu_routes_some_samples_at_a_time_to_the_same_result(pose_rows, monkeypatch):
    layer = FcCaps(6, 3, 4, 4, routing="scaled_distance", pose_rows=pose_rows)
    children = Capsules(torch.randn(5, 6, 4, requires_grad=True), torch.rand(5, 6))
    sizes = []
    vote_and_route = layer._vote_and_route
    monkeypatch.setattr(layer, "_vote_and_route", lambda *x: (sizes.append(len(x[0])), vote_and_route(*x))[1])
    results = []
    for numbers in (1 << 21, 2 * 6 * 3 * 4, 1):
        monkeypatch.setattr(fc, "_VOTES_AT_ONCE", numbers)
        routed = layer(children)
        gradients = torch.autograd.grad(routed.poses.square().sum(), [children.poses, *layer.parameters()])
        results.append([*routed, *gradients])
    assert sizes == [5, 2, 2, 1, 1, 1, 1, 1, 1]
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2])


def test_a_mean_distance_or_a_watcher_sees_the_whole_batch(monkeypatch):
    monkeypatch.setattr(fc, "_VOTES_AT_ONCE", 1)
    children = Capsules(torch.randn(5, 6, 4), torch.rand(5, 6))
    over_batch = FcCaps(6, 3, 4, 4, routing={"name": "scaled_distance", "scope": "batch"})
    assert over_batch._samples_at_once(children.poses) is None
    watched, seen = FcCaps(6, 3, 4, 4, routing="scaled_distance"), []
    watched.routing.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    watched(children)
    assert seen == [5]


class Sevens(DynamicRouting):
    """Routes in a way of its own."""

    def forward(self, votes, activations):
        routed = super().forward(votes, activations)
        return routed._replace(poses=torch.full_like(routed.poses, 7.0))


@pytest.mark.parametrize("batch", [2, 64])
def test_a_derived_routing_is_asked_whatever_the_batch(batch):
    layer = FcCaps(8, 3, 4, 5, routing=Sevens(RoutingShape(8, 3, 5)))
    poses = torch.rand(batch, 8, 4)
    children = Capsules(poses, poses.norm(dim=-1))
    with torch.no_grad():
        assert (layer(children).poses == 7).all()
    assert "no fused kernel for Sevens" in layer.fallback_reason(children)


@pytest.mark.parametrize("kind", ["register_forward_pre_hook", "register_full_backward_hook"])
def test_every_kind_of_hook_is_called(kind):
    layer = FcCaps(8, 3, 4, 5)
    called = []
    getattr(layer.routing, kind)(lambda *_: called.append(kind))
    poses = torch.rand(64, 8, 4, requires_grad=True)
    layer(Capsules(poses, poses.norm(dim=-1)), return_coupling=False).poses.sum().backward()
    assert called


def test_forward_derivatives_are_those_of_finite_differences():
    torch.manual_seed(0)
    layer = FcCaps(8, 3, 4, 5).double()
    poses, direction = torch.randn(2, 64, 8, 4, dtype=torch.float64)

    def total(at):
        return layer(Capsules(at, at.norm(dim=-1)), return_coupling=False).activations.sum()

    _, slope = torch.func.jvp(total, (poses,), (direction,))
    with torch.no_grad():
        step = 1e-6
        expected = (total(poses + step * direction) - total(poses - step * direction)) / (2 * step)
    assert_close(slope, expected, rtol=1e-6, atol=1e-8)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(poses, direction)
        assert_close(torch.autograd.forward_ad.unpack_dual(total(dual)).tangent, slope)


def test_couplings_learn_where_the_bias_of_the_routing_alone_does():
    layer = FcCaps(8, 3, 4, 5, routing={"name": "dynamic", "bias": True})
    layer.weight.requires_grad_(False)
    poses = torch.rand(64, 8, 4)
    assert layer(Capsules(poses, poses.norm(dim=-1))).coupling.requires_grad
