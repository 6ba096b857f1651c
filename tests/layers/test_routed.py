"""The choice between the plain path and a fused kernel, on a CPU."""

from inspect import signature

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, Routed, UserError
from torchcaps.kernels import dynamic_unsupported_reason
from torchcaps.layers import Conv3dRoutingCaps, ConvCaps2d, FcCaps, LocalConvCaps2d, routed
from torchcaps.models import create_model, list_models
from torchcaps.routing import DynamicRouting, EMRouting, RoutingShape, scaled_distance

from refusal import REFUSED


class Halves(torch.nn.Module):
    """A new routing with kernels of its own: all of them, and only they, answer 0.5."""

    def __init__(self, reason=None, slower=None):
        super().__init__()
        self.reason, self.slower = reason, slower
        self.asked = []

    def forward(self, votes, activations):
        poses = votes.mean(-3)
        return Routed(poses, activations.new_ones(poses.shape[:-1]), votes.new_ones(votes.shape[:-1]))

    def fuse(self, votes, *, insist):
        self.asked.append(votes)
        reason = self.reason or (None if insist else self.slower)
        return reason or (lambda: self.halves(votes.weight, (*votes.where, *votes.weight.shape[2:])))

    def fuse_stored(self, votes, *, insist):
        self.asked.append(votes)
        batch, _, *position, types, pose = votes.votes.shape
        return self.reason or (lambda: self.halves(votes.votes, (batch, *position, types, pose)))

    @staticmethod
    def halves(like, shape):
        poses = like.new_full(shape, 0.5)
        return Routed(poses, poses[..., 0], None)


LAYERS = {
    "fc": lambda **settings: FcCaps(48, 3, 4, 5, **settings),
    "conv": lambda **settings: ConvCaps2d(3, 2, 4, 5, kernel_size=3, **settings),
    "local": lambda **settings: LocalConvCaps2d(3, 2, 4, 5, kernel_size=3, **settings),
}
GRID = Capsules(torch.rand(2, 4, 4, 3, 4), torch.rand(2, 4, 4, 3))


METHODS = {
    "forward": ["votes", "activations"],
    "read_out": ["votes", "activations", "coupling"],
    "summands": ["votes", "activations", "coupling"],
    "fuse": ["votes", "insist"],
    "fuse_stored": ["votes", "insist"],
    "batch_parts": ["votes"],
}


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_the_routings_of_a_model_keep_the_protocols(name):
    """Python checks the names of a protocol's methods alone, so their arguments are compared here."""
    layers = create_model(name).modules()
    for routing in filter(None, (getattr(layer, "routing", None) for layer in layers)):
        for method in METHODS.keys() & set(dir(routing)):
            assert list(signature(getattr(routing, method)).parameters) == METHODS[method]


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_new_routing_brings_its_kernel_to_every_layer(make):
    routing = Halves()
    layer = make(routing=routing)
    halves = layer(GRID, return_coupling=False)
    assert (halves.poses == 0.5).all()
    assert len(routing.asked) == 1
    layer.backend = "torch"
    plain = layer(GRID, return_coupling=False)
    assert len(routing.asked) == 1  # the plain path does not ask
    assert not (plain.poses == 0.5).any()
    assert plain.poses.shape == halves.poses.shape
    assert plain.activations.shape == halves.activations.shape


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_reason_stops_auto_and_is_an_error_for_fused(make):
    layer = make(routing=Halves("it is Sunday"))
    assert layer.fallback_reason(GRID) == "it is Sunday"
    assert layer(GRID).coupling is not None
    layer.backend = "fused"
    with pytest.raises(UserError, match="cannot be used here: it is Sunday"):
        layer(GRID)


@pytest.mark.parametrize("name", ["fc", "conv"])
def test_a_kernel_that_is_only_slower_runs_where_it_is_asked_for_by_name(name):
    layer = LAYERS[name](routing=Halves(slower="it is slower"))
    assert layer.fallback_reason(GRID) == "it is slower"
    assert layer(GRID).coupling is not None
    layer.backend = "fused"
    assert (layer(GRID).poses == 0.5).all()


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_watched_or_derived_routing_is_called_itself(make):
    class Derived(Halves):
        pass

    derived = make(routing=Derived())
    assert "no fused kernel for Derived" in derived.fallback_reason(GRID)
    assert derived(GRID).coupling is not None
    watched, seen = make(routing=Halves()), []
    watched.routing.register_forward_hook(lambda *_: seen.append(1))
    assert "hook" in watched.fallback_reason(GRID)
    assert watched(GRID).coupling is not None
    assert seen == [1]


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_an_unknown_backend_is_named(make):
    with pytest.raises(REFUSED, match="backend"):
        make(backend="quick")


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize("make", [*LAYERS.values(), lambda: Conv3dRoutingCaps(3, 2, 4, 5)])
def test_a_tensor_in_place_of_capsules_is_answered_with_what_to_give(make):
    layer = make()
    with pytest.raises(UserError, match=rf"{type(layer).__name__} expects Capsules\(poses, .* got Tensor"):
        layer(GRID.poses)


@pytest.mark.compile  # the run-time type checks would answer first
def test_what_a_layer_gives_is_answered_with_what_the_next_one_takes():
    routed = FcCaps(6, 3, 4, 5)(Capsules(torch.rand(2, 6, 4), torch.rand(2, 6)))
    with pytest.raises(UserError, match="got Routed; give it `capsules` of that"):
        FcCaps(3, 2, 5, 5)(routed)


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize("make", [*LAYERS.values(), lambda: Conv3dRoutingCaps(3, 2, 4, 5)])
def test_activations_of_other_capsules_than_the_poses_are_refused(make):
    layer = make()
    with pytest.raises(UserError, match=rf"{type(layer).__name__} expects poses .* an activation for each"):
        layer(Capsules(GRID.poses, GRID.activations[:1]))
    with pytest.raises(UserError, match=r"got \(3, 4\) and \(3,\)"):
        layer(Capsules(GRID.poses[0, 0, 0], GRID.activations[0, 0, 0]))


@pytest.mark.parametrize(
    "layer",
    [
        ConvCaps2d(3, 2, 4, 5, kernel_size=3),
        LocalConvCaps2d(3, 2, 4, 5, kernel_size=3),
        Conv3dRoutingCaps(3, 2, 4, 5),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_capsules_without_places_are_refused_where_a_map_is_needed(layer):
    poses = torch.rand(2, 3, 4)
    with pytest.raises(UserError, match=rf"{type(layer).__name__} expects capsules on a grid.* \(2, 3, 4\)"):
        layer(Capsules(poses, poses.norm(dim=-1)))


@pytest.mark.parametrize("sizes", [(0, 3, 4, 5), (6, -3, 4, 5), (6, 3, 0, 5), (6, 3, 4, -5)])
def test_a_layer_without_capsules_or_poses_is_refused(sizes):
    with pytest.raises(UserError):
        FcCaps(*sizes)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (LAYERS["fc"], "in_caps=48, out_caps=3, in_pose=4, out_pose=5, matrices=48"),
        (LAYERS["conv"], "in_types=3, out_types=2, in_pose=4, out_pose=5, kernel_size=3, stride=1"),
        (LAYERS["local"], "in_types=3, out_types=2, in_pose=4, out_pose=5, kernel_size=3, stride=1"),
        (lambda: FcCaps(6, 3, 4, 8, pose_rows=2), "in_pose=4, out_pose=8, matrices=6, pose_rows=2"),
    ],
)
def test_a_layer_prints_its_sizes(make, sizes):
    assert sizes in repr(make())


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


@pytest.mark.parametrize(
    ("batch", "children", "parents", "expected"),
    [
        (8, 1152, 10, False),  # measured: 1.4 to 2 times as fast fused
        (6, 1152, 32, True),  # 0.8 to 1.1 times
        (8, 1152, 32, False),  # 1.1 to 1.8 times
        (4, 1152, 100, True),  # 0.7 to 0.9 times
        (16, 288, 500, True),  # 0.8 to 1.1 times
        (128, 1152, 50, False),
        (16, 1152, 1000, False),  # plain votes would take 1.2 GB several times over
    ],
)
def test_many_parents_need_more_poses_to_a_matrix(batch, children, parents, expected):
    poses, weight = torch.empty(1).expand(batch, children, 8), torch.empty(1).expand(children, 8, parents, 16)
    assert (dynamic_unsupported_reason(poses, weight, insist=False) is not None) == expected
    assert dynamic_unsupported_reason(poses, weight) is None


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
        parents = layer(children, return_coupling=False)
        loss = parents.poses.square().sum() + parents.activations.sin().sum()
        gradients = torch.autograd.grad(loss, [poses, *layer.parameters()], retain_graph=True)
        results.append([parents.poses, parents.activations, *gradients])
    assert parents.coupling is None
    assert layer.fallback_reason(children, return_coupling=False) is None
    assert_close(*results)


def test_couplings_of_many_positions_are_routed_plain_unless_the_kernel_is_asked_for_by_name():
    layer = ConvCaps2d(3, 2, 4, 5, kernel_size=3)
    with torch.no_grad():
        assert "faster" in layer.fallback_reason(GRID)
        plain = layer(GRID)
        layer.backend = "fused"
        assert_close(layer(GRID), plain)


@pytest.mark.parametrize("pose_rows", [1, 2])
def test_scaled_distance_on_a_cpu_routes_some_samples_at_a_time_to_the_same_result(pose_rows, monkeypatch):
    layer = FcCaps(6, 3, 4, 4, routing="scaled_distance", pose_rows=pose_rows)
    children = Capsules(torch.randn(5, 6, 4, requires_grad=True), torch.rand(5, 6))
    sizes, results = [], []
    cast = routed.cast_votes
    monkeypatch.setattr(routed, "cast_votes", lambda *x: (sizes.append(len(x[0])), cast(*x))[1])
    for numbers in (1 << 21, 2 * 6 * 3 * 4, 1):
        monkeypatch.setattr(scaled_distance, "_VOTES_AT_ONCE", numbers)
        parents = layer(children)
        gradients = torch.autograd.grad(parents.poses.square().sum(), [children.poses, *layer.parameters()])
        results.append([*parents, *gradients])
    assert sizes == [5, 2, 2, 1, 1, 1, 1, 1, 1]
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2])


def test_a_mean_distance_or_a_watcher_sees_the_whole_batch(monkeypatch):
    monkeypatch.setattr(scaled_distance, "_VOTES_AT_ONCE", 1)
    children, seen = Capsules(torch.randn(5, 6, 4), torch.rand(5, 6)), []
    cast = routed.cast_votes
    monkeypatch.setattr(routed, "cast_votes", lambda *x: (seen.append(len(x[0])), cast(*x))[1])
    FcCaps(6, 3, 4, 4, routing={"name": "scaled_distance", "scope": "batch"})(children)
    watched = FcCaps(6, 3, 4, 4, routing="scaled_distance")
    watched.routing.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    watched(children)
    assert seen == [5, 5, 5]


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


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize(
    "wrong",
    [
        lambda votes, activations: votes.mean(-3),
        lambda votes, activations: Routed(votes.mean(-3).sum(-1), votes.mean((-3, -1)), votes.mean(-1)),
        lambda votes, activations: Routed(votes.mean(-3), votes.mean(-3), votes.mean(-1)),
        lambda votes, activations: Routed(votes.mean((0, -3)), votes.mean((0, -3, -1)), votes.mean(-1)),
        lambda votes, activations: Routed(votes.mean(-3), votes.mean((-3, -1)), activations),
    ],
    ids=["a tensor", "numbers for poses", "poses for activations", "one result", "children for couplings"],
)
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_routing_that_answers_wrongly_is_told_what_to_return(make, wrong):
    with pytest.raises(UserError, match=r"a routing.* returns .*this one"):
        make(routing=wrong)(GRID)


@pytest.mark.parametrize("routing", ["dynamic", "em"])
def test_a_second_derivative_of_a_kernel_names_the_plain_path(routing):
    layer = FcCaps(6, 3, 4, 5, routing=routing, backend="fused")
    poses = torch.rand(2, 6, 4, requires_grad=True)

    def penalty():
        routed = layer(Capsules(poses, poses.norm(dim=-1)), return_coupling=False)
        (slope,) = torch.autograd.grad(routed.activations.sum(), poses, create_graph=True)
        return slope.square().sum()

    with pytest.raises(UserError, match=r'no second derivatives; .*layer\.backend = "torch"'):
        penalty().backward()
    layer.backend = "torch"
    penalty().backward()
    assert poses.grad.abs().sum() > 0


@pytest.mark.parametrize("routing", ["dynamic", "em"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_kernel_answers_in_the_precision_of_its_layer(routing, dtype):
    layer = FcCaps(6, 3, 4, 5, routing=routing, backend="fused").to(dtype)
    routed = layer(Capsules(torch.rand(2, 6, 4), torch.rand(2, 6)), return_coupling=False)
    assert (routed.poses.dtype, routed.activations.dtype) == (dtype, dtype)


@pytest.mark.compile
@pytest.mark.parametrize("routing", ["dynamic", "em"])  # with kernels for a CPU
def test_a_compiled_layer_keeps_its_kernel(routing):
    layer = FcCaps(6, 3, 16, 16, routing=routing, pose_rows=4 if routing == "em" else 1, backend="fused")
    graphs = []

    def note(graph, _):
        graphs.append(str(graph.graph))
        return graph

    compiled = torch.compile(layer, backend=note, fullgraph=True)
    children = Capsules(torch.rand(8, 6, 16), torch.rand(8, 6))
    routed = compiled(children, return_coupling=False)
    assert all("torchcaps" in graph for graph in graphs)
    assert len(graphs) == 1
    assert_close(routed.poses, layer(children, return_coupling=False).poses)


@pytest.mark.compile
@pytest.mark.parametrize("strict", [False, True])
def test_a_layer_is_exported_for_any_batch_without_a_kernel(strict):
    layer = FcCaps(6, 3, 4, 5).eval()

    class OfPoses(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, poses):
            return self.layer(Capsules(poses, poses.norm(dim=-1)), return_coupling=False).poses

    batch = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(OfPoses(), (torch.rand(8, 6, 4),), dynamic_shapes=batch, strict=strict)
    assert "torchcaps" not in str(program.graph)
    for size in (1, 2, 30):
        poses = torch.rand(size, 6, 4)
        assert_close(program.module()(poses), OfPoses()(poses))


@pytest.mark.parametrize(
    "layer",
    [
        FcCaps(6, 3, 4, 5, routing=EMRouting(RoutingShape(6, 1, 5)), backend="fused"),
        FcCaps(6, 3, 4, 5, routing=DynamicRouting(RoutingShape(6, 1, 5)), backend="fused"),
        LocalConvCaps2d(
            6, 3, 4, 5, kernel_size=3, routing=DynamicRouting(RoutingShape(6, 1, 5)), backend="fused"
        ),
    ],
    ids=["em", "dynamic", "stored votes"],
)
def test_a_kernel_is_not_given_parameters_of_other_sizes(layer):
    poses = torch.randn(2, 6, 4) if isinstance(layer, FcCaps) else torch.randn(2, 3, 3, 6, 4)
    with torch.no_grad(), pytest.raises(UserError, match="built for sizes"):
        layer(Capsules(poses, poses.norm(dim=-1)), return_coupling=False)
