"""The fused layer on the CPU, against the textbook loop."""

from dataclasses import replace

import pytest
import torch

from torchcaps.kernels import dynamic_unsupported_reason, fused_dynamic_coupling, fused_dynamic_routing
from torchcaps.kernels.dynamic import cpu, operators

from kernels.poison import poison_fresh_memory
from kernels.routing_reference import (
    CASES,
    Case,
    assert_as_accurate_as_the_textbook,
    textbook_poses,
    textbook_routing,
)


@pytest.fixture
def _poisoned_memory(monkeypatch):
    poison_fresh_memory(monkeypatch)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_as_accurate_as_the_textbook_loop(case):
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case)


@pytest.mark.parametrize("matrices", [36, 4])
def test_tiles_of_the_batch_join_without_a_seam(matrices, monkeypatch):
    case = Case(batch=7, in_caps=36, matrices=matrices)
    monkeypatch.setattr(cpu, "_TILE_ELEMENTS", 3 * 7 * 36 * 5)
    monkeypatch.setattr(cpu, "_MOST_ELEMENTS", 0)
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case)


@pytest.mark.parametrize("gradient", ["full", "last", "last_votes"])
@pytest.mark.parametrize("matrices", [6, 3])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(matrices, gradient):
    case = Case(batch=2, in_caps=6, in_pose=3, matrices=matrices, out_caps=4, pose=2, leaky=True)
    routing = replace(case, gradient=gradient).routing
    inputs = case.inputs()
    fused = torch.autograd.grad(fused_dynamic_routing(*inputs, **routing), inputs, case.incoming())
    exact = torch.autograd.grad(textbook_poses(*inputs, **routing), inputs, case.incoming())
    torch.testing.assert_close(fused, exact)
    if gradient == "full":
        assert torch.autograd.gradcheck(
            lambda *x: fused_dynamic_routing(*x, **routing), inputs, fast_mode=True
        )


@pytest.mark.usefixtures("_poisoned_memory")
@pytest.mark.parametrize("case", [Case(), Case(gradient="last"), Case(in_caps=36, matrices=4)])
def test_every_element_is_written(case):
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case)


@pytest.mark.parametrize("case", [Case(), Case(leaky=True), Case(in_caps=36, matrices=4), Case(iterations=1)])
def test_couplings_are_those_of_the_last_iteration(case):
    inputs = case.inputs()
    coupling = fused_dynamic_coupling(*inputs, iterations=case.iterations, leaky=case.leaky)
    torch.testing.assert_close(coupling, textbook_routing(*inputs, **case.routing)[1])
    assert not coupling.requires_grad
    shares = coupling.sum(-1)
    assert (shares < 1).all() if case.leaky else torch.allclose(shares, torch.ones_like(shares))


def test_two_calls_give_the_same_bits():
    case = Case(batch=16, in_caps=64, matrices=64)
    inputs = case.inputs(torch.float32)
    first, second = (fused_dynamic_routing(*inputs, **case.routing) for _ in range(2))
    assert torch.equal(first, second)
    gradients = [torch.autograd.grad(out, inputs, torch.ones_like(out)) for out in (first, second)]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_bfloat16_is_computed_in_float32():
    case = Case()
    inputs = [x.detach().bfloat16() for x in case.inputs(torch.float32)]
    routed = fused_dynamic_routing(*inputs, **case.routing)
    exact = textbook_poses(*(x.double() for x in inputs), **case.routing)
    assert routed.dtype == torch.bfloat16
    torch.testing.assert_close(routed, exact.bfloat16(), rtol=2**-8, atol=0)
    mixed = fused_dynamic_routing(inputs[0], *(x.float() for x in inputs[1:]), **case.routing)
    assert mixed.dtype == torch.float32


def test_autocast_changes_nothing():
    case = Case(batch=8, in_caps=64, matrices=64)
    inputs = case.inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = fused_dynamic_routing(*inputs, **case.routing)
    assert torch.equal(cast, fused_dynamic_routing(*inputs, **case.routing))


def test_long_votes_stay_finite():
    case = Case()
    inputs = [(1e4 * x.detach()).requires_grad_() for x in case.inputs(torch.float32)]
    routed = fused_dynamic_routing(*inputs, **case.routing)
    assert all(x.isfinite().all() for x in (routed, *torch.autograd.grad(routed.sum(), inputs)))


def test_votes_whose_squares_overflow_are_routed_as_in_float64():
    """Their parents have length one, neither zero nor NaN, and gradients that turn them."""
    case = Case(batch=2, in_caps=6, matrices=6)
    poses, *others = case.inputs()
    exact_inputs = [(1e20 * poses.detach()).requires_grad_(), *others]
    inputs = [x.detach().float().requires_grad_() for x in exact_inputs]
    routed = fused_dynamic_routing(*inputs, **case.routing)
    exact = textbook_poses(*exact_inputs, **case.routing)
    torch.testing.assert_close(routed, exact.float(), rtol=1e-4, atol=1e-5)
    (grad,), (exact_grad,) = (
        torch.autograd.grad(out[..., 0].sum(), some[:1])
        for out, some in ((routed, inputs), (exact, exact_inputs))
    )
    assert exact_grad.abs().max() > 0
    torch.testing.assert_close(1e20 * grad, 1e20 * exact_grad.float(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("batch", "in_caps"), [(0, 37), (3, 0)])
def test_nothing_to_route_is_no_error(batch, in_caps):
    inputs = Case(batch=batch, in_caps=in_caps).inputs(torch.float32)
    routed = fused_dynamic_routing(*inputs)
    gradients = torch.autograd.grad(routed.sum(), inputs)
    assert routed.shape == (batch, 7, 6)
    assert not any(x.isnan().any() for x in (routed, *gradients))
    assert fused_dynamic_coupling(*inputs).shape == (batch, in_caps, 7)


def test_unusable_inputs_are_answered_with_a_sentence():
    poses, weight = Case(bias=False).inputs(torch.float32)
    assert dynamic_unsupported_reason(poses, weight) is None
    assert "floating point" in dynamic_unsupported_reason(poses.long(), weight)
    with pytest.raises(ValueError, match="at least 1"):
        fused_dynamic_routing(poses, weight, iterations=0)
    with pytest.raises(ValueError, match="cannot share 36 matrices"):
        fused_dynamic_routing(poses, weight[:36])


@pytest.mark.compile  # the run-time shape checks would answer first
def test_shapes_that_do_not_fit_are_named():
    poses, weight, bias = Case().inputs(torch.float32)
    with pytest.raises(ValueError, match="gradient must be"):
        fused_dynamic_routing(poses, weight, gradient="some")
    with pytest.raises(ValueError, match="do not fit"):
        fused_dynamic_routing(poses[..., :4], weight)
    with pytest.raises(ValueError, match="bias must be"):
        fused_dynamic_routing(poses, weight, bias.mT)


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # raised inside the compiler
@pytest.mark.parametrize("case", [Case(), Case(gradient="last", leaky=True, bias=False)])
def test_it_compiles_into_one_graph(case):
    inputs = case.inputs(torch.float32)
    compiled = torch.compile(lambda *x: fused_dynamic_routing(*x, **case.routing), fullgraph=True)
    eager, fused = fused_dynamic_routing(*inputs, **case.routing), compiled(*inputs)
    torch.testing.assert_close(fused, eager)
    gradients = [torch.autograd.grad(out, inputs, torch.ones_like(out)) for out in (fused, eager)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("sizes", [(2**20, 2**8, 8, 1, 1), (1, 2**15, 64, 2**6, 16), (2**17, 1, 8, 2**11, 8)])
def test_the_kernel_counts_children_matrices_and_parents_in_32_bits(sizes):
    batch, in_caps, in_pose, out_caps, pose = sizes
    poses = torch.zeros(1).expand(batch, in_caps, in_pose)
    weight = torch.zeros(1).expand(in_caps, in_pose, out_caps, pose)
    assert "fewer than 2**31 numbers" in operators._too_large(poses, weight)
    assert operators._too_large(poses[: batch // 2], weight[: (in_caps + 1) // 2]) is None


@pytest.mark.slow
def test_the_operators_keep_their_promises_to_the_compiler():
    poses, weight, bias = Case(batch=2, in_caps=4, matrices=2).inputs(torch.float32)
    for gradient in ("full", "last_votes"):
        settings = (3, gradient, False)
        torch.library.opcheck(torch.ops.torchcaps.dynamic_routing.default, (poses, weight, bias, *settings))
    torch.library.opcheck(
        torch.ops.torchcaps.dynamic_coupling.default,
        (poses.detach(), weight.detach(), bias.detach(), 2, True),
    )
