"""Dynamic routing over stored votes on a CPU, against the plain function, and why a layer does without it."""

from dataclasses import replace

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import availability, fused_local_dynamic_routing, local_dynamic_unsupported_reason
from torchcaps.kernels.local_dynamic import cpu, operators
from torchcaps.layers import LocalConvCaps2d, LocalDeconvCaps2d

from kernels.layer_reference import assert_answers_alike
from kernels.local_reference import (
    CASES,
    QUICK,
    LocalCase,
    assert_as_accurate_as_the_plain_function,
    plain_local_routing,
)
from kernels.poison import poison_fresh_memory

ALL = {**QUICK, **CASES}
CHILDREN = Capsules(torch.rand(1, 4, 4, 2, 3), torch.rand(1, 4, 4, 2))


@pytest.fixture
def compiled(monkeypatch):
    """The passes that numba compiles, for any number of votes, with blocks of two spots; they are cached."""
    pytest.importorskip("numba", reason="the compiled passes need numba")
    from torchcaps.kernels.local_dynamic import compiled

    monkeypatch.setattr(operators, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(compiled, "_LANES", (2, 2))
    return compiled


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_it_is_as_accurate_as_the_plain_function(case):
    assert_as_accurate_as_the_plain_function(case)


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_compiled_it_is_as_accurate_as_the_plain_function(case, compiled, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_function(case)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_or_not_it_gives_the_same_for_many_votes(dtype, compiled, monkeypatch):
    case = LocalCase(batch=3, in_caps=4, positions=33, out_caps=3, pose=16)
    monkeypatch.setattr(cpu, "_FEWEST_SPOTS", 8)
    monkeypatch.setattr(cpu, "_TILE_ELEMENTS", 8 * 4 * 3 * 16)
    results = []
    for fewest in (0, 1 << 40):
        monkeypatch.setattr(operators, "_WORTH_COMPILING", fewest)
        results.append(case.outputs_and_gradients(fused_local_dynamic_routing, dtype, "cpu", 1))
    torch.testing.assert_close(*results, rtol=2**-7 if dtype == torch.bfloat16 else 1e-4, atol=1e-5)


def assert_finite_with_votes_times(scale):
    inputs = [(scale * x.detach()).requires_grad_() for x in LocalCase().inputs()]
    routed = fused_local_dynamic_routing(*inputs)
    gradients = torch.autograd.grad(routed, inputs, [torch.ones_like(x) for x in routed])
    assert all(x.isfinite().all() for x in (*routed, *gradients))


@pytest.mark.parametrize("scale", [0.0, 1e4, 1e30])
def test_compiled_long_votes_and_zero_votes_stay_finite(scale, compiled):
    assert_finite_with_votes_times(scale)


def test_compiled_a_vote_that_is_no_number_spoils_its_position_alone(compiled):
    votes, bias = (x.detach() for x in LocalCase().inputs())
    votes[1, 0, 2, 1, 0] = torch.nan
    (poses, lengths), (plain, _) = fused_local_dynamic_routing(votes, bias), plain_local_routing(votes, bias)
    assert torch.equal(poses.isnan(), plain.isnan())
    assert lengths[1, :, 2].isnan().all()
    assert not lengths[0].isnan().any()


def test_only_many_votes_in_float32_or_bfloat16_are_worth_compiling():
    def is_compiled(votes):
        return operators._backend(votes).__name__.endswith("compiled")

    pytest.importorskip("numba", reason="the compiled passes need numba")
    many = torch.zeros(1).expand(4, 4, 1024, 4, 16)
    assert is_compiled(many)
    assert is_compiled(many.bfloat16())
    assert not is_compiled(many.double())
    assert not is_compiled(many.half())
    assert not is_compiled(many[:1, :1])


@pytest.mark.parametrize("leaky", [False, True])
@pytest.mark.parametrize("gradient", ["full", "last"])
def test_a_single_out_capsule_is_routed_as_the_plain_function_does(leaky, gradient):
    case = LocalCase(out_caps=1, leaky=leaky, gradient=gradient)
    fused = case.outputs_and_gradients(fused_local_dynamic_routing, torch.float64, "cpu", 2)
    plain = case.outputs_and_gradients(plain_local_routing, torch.float64, "cpu", 2)
    torch.testing.assert_close(fused, plain)


@pytest.mark.parametrize("case", [LocalCase(batch=3), LocalCase(gradient="last"), LocalCase(iterations=1)])
@pytest.mark.parametrize("spots", [2, 5])
def test_every_element_is_written_and_tiles_join_without_a_seam(case, spots, monkeypatch):
    poison_fresh_memory(monkeypatch)
    monkeypatch.setattr(cpu, "_FEWEST_SPOTS", spots)
    monkeypatch.setattr(cpu, "_TILE_ELEMENTS", spots * case.in_caps * case.out_caps * case.pose)
    assert_as_accurate_as_the_plain_function(case)


@pytest.mark.parametrize(
    "case", [LocalCase(batch=1, positions=2), LocalCase(leaky=True), LocalCase(iterations=1)]
)
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(case):
    inputs = case.inputs(torch.float64)
    assert torch.autograd.gradcheck(
        lambda *x: fused_local_dynamic_routing(*x, **case.settings), inputs, fast_mode=True
    )


@pytest.mark.parametrize("gradient", ["full", "last"])
def test_gradients_are_those_of_the_plain_function(gradient):
    case = replace(LocalCase(leaky=True), gradient=gradient)
    fused = case.outputs_and_gradients(fused_local_dynamic_routing, torch.float64, "cpu", 2)
    plain = case.outputs_and_gradients(plain_local_routing, torch.float64, "cpu", 2)
    torch.testing.assert_close(fused, plain)


def test_votes_may_lie_in_memory_in_any_order():
    votes, bias = (x.detach() for x in LocalCase().inputs())
    as_maps = votes.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    results = [fused_local_dynamic_routing(x, bias) for x in (votes, as_maps, votes.flip(0).flip(0))]
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(other, results[0], strict=True))


def test_a_position_sees_neither_its_batch_nor_its_neighbours():
    votes, bias = (x.detach() for x in LocalCase(batch=3).inputs(torch.float64))
    whole = fused_local_dynamic_routing(votes, bias)
    alone = fused_local_dynamic_routing(votes[1:2, :, 3:4], bias)
    torch.testing.assert_close(alone, tuple(x[1:2, :, 3:4] for x in whole))


def test_the_order_of_children_does_not_matter():
    votes, bias = (x.detach() for x in LocalCase().inputs(torch.float64))
    torch.testing.assert_close(
        fused_local_dynamic_routing(votes.flip(1), bias), fused_local_dynamic_routing(votes, bias)
    )


def test_half_precision_votes_are_routed_in_float32():
    votes, bias = (x.detach() for x in LocalCase().inputs())
    votes = votes.bfloat16().requires_grad_()
    routed = fused_local_dynamic_routing(votes, bias)
    exact = plain_local_routing(votes.detach().double(), bias.double())
    torch.testing.assert_close(routed, tuple(x.float() for x in exact))
    (gradient,) = torch.autograd.grad(routed[0].sum(), votes)
    wide = votes.detach().double().requires_grad_()
    (exact_gradient,) = torch.autograd.grad(plain_local_routing(wide, bias.double())[0].sum(), wide)
    torch.testing.assert_close(gradient, exact_gradient.bfloat16(), rtol=2**-7, atol=1e-4)


def test_two_calls_give_the_same_bits_and_autocast_changes_nothing():
    votes, bias = LocalCase().inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = fused_local_dynamic_routing(votes, bias)
    second = fused_local_dynamic_routing(votes, bias)
    gradients = [torch.autograd.grad(x[0].sum(), (votes, bias)) for x in (first, second)]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_long_votes_and_zero_votes_stay_finite(scale):
    assert_finite_with_votes_times(scale)


@pytest.mark.parametrize("sizes", [{"batch": 0}, {"positions": 0}])
def test_nothing_to_route_is_no_error(sizes):
    case = LocalCase(**sizes)
    votes, bias = case.inputs()
    poses, lengths = fused_local_dynamic_routing(votes, bias)
    assert poses.shape == (case.batch, 4, case.positions, 6)
    gradients = torch.autograd.grad(poses.sum() + lengths.sum(), (votes, bias))
    assert not any(x.isnan().any() for x in gradients)


@pytest.mark.parametrize(("kind", "checkpoint"), [(LocalConvCaps2d, True), (LocalDeconvCaps2d, False)])
def test_a_local_layer_answers_the_same_with_the_kernel(kind, checkpoint):
    torch.manual_seed(0)
    layer = kind(2, 3, 4, 5, kernel_size=4, stride=2, checkpoint=checkpoint).double()
    children = Capsules(torch.randn(1, 2, 4, 2, 4).double(), torch.rand(1, 2, 4, 2).double())
    assert_answers_alike(layer, children)


def test_the_operator_keeps_its_promises_to_the_compiler():
    votes, bias = LocalCase(batch=1, positions=2).inputs()
    as_maps = votes.detach().permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3).requires_grad_()
    operator = torch.ops.torchcaps.local_dynamic_routing.default
    torch.library.opcheck(operator, (as_maps, bias, 3, True, False))


def test_unusable_votes_are_answered_with_a_sentence():
    assert "floating point" in local_dynamic_unsupported_reason(torch.zeros(1, 2, 3, 4, 5).long())
    with pytest.raises(ValueError, match="at least 1, got 0"):
        fused_local_dynamic_routing(torch.rand(1, 2, 3, 4, 5), iterations=0)


def test_sizes_and_dtypes_beyond_the_gpu_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    votes = torch.zeros(1, 16, 2, 8, 64)
    assert local_dynamic_unsupported_reason(votes) is None
    assert "17x8x64" in local_dynamic_unsupported_reason(torch.zeros(1, 17, 2, 8, 64))
    assert "float64" in local_dynamic_unsupported_reason(votes.double())


def test_few_votes_or_one_child_take_the_plain_path_unless_it_is_insisted_on():
    few, single, many = (
        torch.zeros(sizes) for sizes in ((1, 2, 3, 4, 5), (9, 1, 64, 4, 4), (1, 2, 64, 4, 4))
    )
    assert local_dynamic_unsupported_reason(many, insist=False) is None
    assert "plain path is faster" in local_dynamic_unsupported_reason(few, insist=False)
    assert "with 1 children" in local_dynamic_unsupported_reason(single, insist=False)
    assert local_dynamic_unsupported_reason(few) is None


def test_a_layer_falls_back_and_says_why():
    layer = LocalConvCaps2d(2, 3, 3, 4, kernel_size=3)
    assert "plain path is faster" in layer.fallback_reason(CHILDREN, return_coupling=False)
    assert "couplings were asked for" in layer.fallback_reason(CHILDREN)
    layer.backend = "fused"
    assert layer(CHILDREN, return_coupling=False).coupling is None
    with pytest.raises(UserError, match="couplings were asked for"):
        layer(CHILDREN)
    layer.routing.register_forward_hook(lambda *_: None)
    assert "hook" in layer.fallback_reason(CHILDREN, return_coupling=False)


def test_a_routing_without_a_kernel_is_named():
    layer = LocalConvCaps2d(2, 3, 3, 4, kernel_size=3, routing="em")
    assert "EMRouting" in layer.fallback_reason(CHILDREN, return_coupling=False)
