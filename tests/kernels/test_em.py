"""Fused EM routing on a CPU, against the plain layers, and what it says where it cannot run."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import EMScales, availability, em_unsupported_reason, fused_em_routing
from torchcaps.kernels.em import cpu_layer, operators
from torchcaps.layers import ConvCaps2d, FcCaps

from kernels import em_reference
from kernels.em_reference import EMCase
from kernels.layer_reference import assert_as_accurate_as_the_plain_layer
from kernels.poison import poison_fresh_memory

ALL = {**em_reference.QUICK, **em_reference.CASES}
DENSE = EMCase(kernel=0, height=2, width=2, coordinates=True)

# more numbers in a row or column than the four that the compiled passes add at a time, and fewer
COMPILED = {
    **ALL,
    "wide": EMCase(rows=5, in_columns=6, out_columns=7),
    "matrices": EMCase(rows=4, in_columns=4, out_columns=4),
}


def like(*shape, dtype=torch.float32):
    return torch.zeros((), dtype=dtype).expand(shape)


def routed_by(case, backend, inputs, layer=None):
    layer = layer or case.layer().double()
    layer.backend = backend
    return layer(Capsules(*inputs), return_coupling=False)[:2]


def drawn(case, dtype=torch.float64):
    return [x.to(dtype).requires_grad_() for x in case.children(0)]


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_it_is_as_accurate_as_the_plain_layer(case):
    assert_as_accurate_as_the_plain_layer(case)


@pytest.fixture
def compiled(monkeypatch):
    """The passes that numba compiles, for any number of votes; their compilation makes a first test slow."""
    pytest.importorskip("numba", reason="the compiled passes need numba")
    monkeypatch.setattr(operators, "_WORTH_COMPILING", 0)


@pytest.fixture(params=["plain operations", pytest.param("compiled", marks=pytest.mark.slow)])
def passes(request):
    """Both CPU paths, one after the other."""
    if request.param == "compiled":
        request.getfixturevalue("compiled")


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED.values(), ids=COMPILED)
def test_compiled_it_is_as_accurate_as_the_plain_layer(case, compiled, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_layer(case)


@pytest.mark.parametrize("case", [EMCase(), EMCase(stride=1), DENSE])
def test_every_element_is_written_and_tiles_join_without_a_seam(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    monkeypatch.setattr(cpu_layer, "_TILE_ELEMENTS", 1)  # one sample at a time
    assert_as_accurate_as_the_plain_layer(case)


@pytest.mark.parametrize("case", [EMCase(height=3, batch=1), EMCase(competing=False, batch=1), DENSE])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(case):
    layer = case.layer().double()
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def route(poses, activations, *values):
        layer.backend = "fused"
        kids = (Capsules(poses, activations),)
        changed = dict(zip(names, values, strict=True))
        return torch.func.functional_call(layer, changed, kids, {"return_coupling": False})[:2]

    assert torch.autograd.gradcheck(route, (*drawn(case), *parameters), fast_mode=True)


def test_votes_far_from_zero_are_no_less_accurate(passes):
    case = EMCase(height=3, width=5, rows=4, in_columns=4, out_columns=4)

    def far(dtype, backend):
        poses, activations = (x.detach().to(dtype) for x in case.children(0))
        inputs = [(poses + 20).requires_grad_(), activations.requires_grad_()]
        routed = routed_by(case, backend, inputs, case.layer().to(dtype))
        return [*routed, *torch.autograd.grad(routed[0].sum() + routed[1].sum(), inputs)]

    exact, plain, fused = (
        far(*how) for how in ((torch.double, "torch"), (torch.float, "torch"), (torch.float, "fused"))
    )
    for of_exact, of_plain, of_fused in zip(exact, plain, fused, strict=True):
        assert (of_fused - of_exact).norm() <= 2 * (of_plain - of_exact).norm() + 1e-6 * of_exact.norm()


@pytest.mark.parametrize("case", [EMCase(batch=3), DENSE])
def test_a_sample_does_not_see_its_batch(case):
    poses, activations = drawn(case)
    whole = routed_by(case, "fused", (poses, activations))
    for sample in range(len(poses)):
        alone = routed_by(case, "fused", (poses[sample : sample + 1], activations[sample : sample + 1]))
        torch.testing.assert_close(alone, tuple(x[sample : sample + 1] for x in whole))


def test_inputs_may_lie_in_memory_in_any_order():
    case = EMCase()
    poses, activations = (x.detach() for x in drawn(case))
    turned = poses.transpose(1, 2).contiguous().transpose(1, 2), activations.flip(0).flip(0)
    torch.testing.assert_close(
        routed_by(case, "fused", turned), routed_by(case, "torch", (poses, activations))
    )


def test_two_calls_give_the_same_bits(passes):
    case, layer = EMCase(stride=1), EMCase(stride=1).layer()
    inputs = drawn(case, torch.float32)
    runs = []
    for _ in range(2):
        routed = routed_by(case, "fused", inputs, layer)
        learned = [*inputs, *layer.parameters()]
        runs.append([*routed, *torch.autograd.grad(routed[0].sum() + routed[1].sum(), learned)])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_autocast_changes_nothing():
    case, layer = EMCase(), EMCase().layer()
    inputs = drawn(case, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = routed_by(case, "fused", inputs, layer)
    assert all(torch.equal(a, b) for a, b in zip(cast, routed_by(case, "fused", inputs, layer), strict=True))


def test_wild_votes_and_absent_children_stay_finite(passes):
    case = EMCase()
    for scale, present in ((1e4, 1.0), (1.0, 0.0)):
        poses, activations = (x.detach() for x in drawn(case, torch.float32))
        inputs = (scale * poses).requires_grad_(), (present * activations).requires_grad_()
        routed = routed_by(case, "fused", inputs, case.layer())
        gradients = torch.autograd.grad(routed[0].sum() + routed[1].sum(), inputs)
        assert all(x.isfinite().all() for x in (*routed, *gradients))


@pytest.mark.slow
def test_compiled_a_vote_that_is_no_number_spoils_its_sample_alone(compiled):
    case = EMCase()
    poses, activations = (x.detach() for x in drawn(case, torch.float32))
    poses[1, 2, 3, 1, 0] = torch.nan
    means, active = routed_by(case, "fused", (poses, activations), case.layer())
    plain, _ = routed_by(case, "torch", (poses, activations), case.layer())
    assert torch.equal(means.isnan(), plain.isnan())
    assert active[1].isnan().any()
    assert not active[0].isnan().any()


def test_only_many_votes_in_float32_are_worth_compiling():
    pytest.importorskip("numba", reason="the compiled passes need numba")

    def is_compiled(poses):
        return operators._backend(poses, like(72, 4, 16, 4)).__name__.endswith("compiled")

    assert is_compiled(like(4608, 72, 16))
    assert not is_compiled(like(1, 72, 16))
    assert not is_compiled(like(4608, 72, 16, dtype=torch.float64))


@pytest.mark.slow
def test_the_operator_keeps_its_promises_to_the_compiler():
    children = torch.rand(4, 3, 4, requires_grad=True), torch.rand(4, 3)
    costs = torch.rand(2), torch.rand(2)
    settings = [1, 1, 1, 1], 2, [1.0, 0.1, 1.5]
    torch.library.opcheck(
        torch.ops.torchcaps.em_routing.default, (*children, torch.rand(3, 2, 2, 2), None, *costs, *settings)
    )


def test_nothing_to_route_is_named():
    assert "nothing" in em_unsupported_reason(like(0, 1, 1, 9, 16), like(9, 4, 2, 4))
    with pytest.raises(ValueError, match="nothing"):
        fused_em_routing(
            like(0, 1, 1, 9, 16),
            like(0, 1, 1, 9),
            like(9, 4, 2, 4),
            costs=(like(2), like(2)),
            window=(3, 1),
            scales=EMScales(3, 1.0, 0.1, 1.0),
        )


def test_sizes_and_dtypes_beyond_the_gpu_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    weight = like(9, 4, 2, 4)
    assert em_unsupported_reason(like(1, 1, 1, 9, 16), weight) is None
    assert "float64" in em_unsupported_reason(like(1, 1, 1, 9, 16, dtype=torch.float64), weight)
    assert "17x17" in em_unsupported_reason(like(1, 1, 1, 9, 17), like(9, 1, 2, 17))
    assert "257" in em_unsupported_reason(like(1, 1, 1, 9, 16), like(9, 4, 257, 4))
    assert "2**31" in em_unsupported_reason(like(2**20, 1, 1, 2**7, 16), weight)


def test_few_children_or_votes_take_the_plain_path_unless_it_is_insisted_on():
    weight, few, many = like(8, 4, 2, 4), like(1, 1, 1, 8, 16), like(64, 1, 1, 8, 16)
    assert em_unsupported_reason(many, weight, insist=False) is None
    assert "plain path is faster" in em_unsupported_reason(few, weight, insist=False)
    assert "with 7 children" in em_unsupported_reason(many[..., :7, :], weight[:7], insist=False)
    assert em_unsupported_reason(few, weight) is None


CASES = [EMCase(), EMCase(competing=False), DENSE]


@pytest.mark.parametrize("case", CASES)
def test_couplings_come_from_the_plain_path(case):
    layer, children = case.layer(), Capsules(*case.children(0))
    assert "couplings were asked for" in layer.fallback_reason(children)
    assert layer(children).coupling is not None
    layer.backend = "fused"
    assert layer(children, return_coupling=False).coupling is None
    with pytest.raises(UserError, match="couplings were asked for"):
        layer(children)


@pytest.mark.parametrize("case", CASES)
def test_a_watched_routing_is_not_replaced(case):
    layer, children = case.layer(), Capsules(*case.children(0))
    inner = getattr(layer.routing, "routing", layer.routing)
    inner.register_forward_hook(lambda *_: None)
    assert "hook" in layer.fallback_reason(children, return_coupling=False)


def test_a_routing_without_a_kernel_is_named():
    children = Capsules(torch.rand(1, 3, 3, 2, 4), torch.rand(1, 3, 3, 2))
    matrices = ConvCaps2d(2, 3, 4, 4, kernel_size=3, pose_rows=2)
    assert "matrices" in matrices.fallback_reason(children, return_coupling=False)
    shared = FcCaps(18, 3, 4, 4, routing="self_routing")
    assert "SelfRouting" in shared.fallback_reason(children, return_coupling=False)
