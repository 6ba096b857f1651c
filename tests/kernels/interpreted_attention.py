"""Self-attention routing in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import fused_self_attention_routing
from torchcaps.kernels.self_attention import function
from torchcaps.layers import FcCaps

from kernels.attention_reference import QUICK, AttentionCase, assert_as_accurate_as_the_plain_function
from kernels.layer_reference import assert_answers_alike

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NumPy warns where a GPU does not
]


@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK)
def test_it_is_as_accurate_as_the_plain_function(case):
    assert_as_accurate_as_the_plain_function(case)


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e4])
def test_short_and_long_votes_stay_finite(scale):
    inputs = [(scale * x.detach()).requires_grad_() for x in AttentionCase().inputs()]
    outputs = fused_self_attention_routing(*inputs)[:2]
    gradients = torch.autograd.grad(outputs, inputs, [torch.ones_like(x) for x in outputs])
    assert all(x.isfinite().all() for x in (*outputs, *gradients))


def test_lengths_alone_have_a_gradient_and_couplings_have_none():
    inputs = AttentionCase().inputs()
    poses, lengths, coupling = fused_self_attention_routing(*inputs)
    assert not coupling.requires_grad
    found = torch.autograd.grad(lengths.sum(), inputs, retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(poses.norm(dim=-1).sum(), inputs))


def test_a_second_derivative_is_refused():
    inputs = AttentionCase().inputs()
    gradients = torch.autograd.grad(fused_self_attention_routing(*inputs)[1].sum(), inputs, create_graph=True)
    for gradient in gradients:
        with pytest.raises(UserError, match="no second derivatives"):
            torch.autograd.grad(gradient.sum(), inputs, retain_graph=True)


def test_a_second_derivative_is_refused_where_the_prior_learns_alone():
    poses, weight, prior = AttentionCase().inputs()
    lengths = fused_self_attention_routing(poses.detach(), weight.detach(), prior)[1]
    (gradient,) = torch.autograd.grad(lengths.sum(), prior, create_graph=True)
    with pytest.raises(UserError, match="no second derivatives"):
        torch.autograd.grad(gradient.sum(), prior)


def test_many_gradients_at_once_are_those_of_each():
    inputs = AttentionCase(samples=1).inputs()
    lengths = fused_self_attention_routing(*inputs)[1].flatten()
    each = torch.eye(len(lengths))
    found = torch.autograd.grad(lengths, inputs, each, is_grads_batched=True, retain_graph=True)
    single = [torch.autograd.grad(lengths, inputs, row, retain_graph=True) for row in each]
    assert all(map(torch.equal, found, map(torch.stack, zip(*single, strict=True))))


def test_no_samples_give_no_parents_and_gradients_of_zero():
    case = AttentionCase(samples=0)
    inputs = case.inputs()
    outputs = fused_self_attention_routing(*inputs)
    assert [x.shape for x in outputs] == [(0, 5, 4), (0, 5), (0, 6, 5)]
    gradients = torch.autograd.grad(outputs[0].sum() + outputs[1].sum(), inputs)
    assert [x.shape for x in gradients] == [x.shape for x in inputs]
    assert not any(x.any() for x in gradients)


def test_autocast_changes_nothing():
    inputs = AttentionCase().inputs()
    with torch.autocast("cpu", torch.bfloat16):
        cast = fused_self_attention_routing(*inputs)
    assert all(map(torch.equal, cast, fused_self_attention_routing(*inputs)))


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float64])
def test_a_prior_may_have_a_precision_of_its_own(precision):
    poses, weight, prior = AttentionCase().inputs()
    other = prior.detach().to(precision).requires_grad_()
    routed = fused_self_attention_routing(poses, weight, other)
    torch.testing.assert_close(routed, fused_self_attention_routing(poses, weight, other.float()))
    assert torch.autograd.grad(routed[1].sum(), other)[0].dtype == precision


def test_a_prior_of_another_size_is_refused():
    poses, weight, prior = AttentionCase().inputs()
    with pytest.raises(ValueError, match=r"prior must be \(6, 5\), got \(1, 5\)"):
        fused_self_attention_routing(poses, weight, prior[:1])


def test_a_sample_does_not_see_its_batch():
    poses, weight, prior = AttentionCase(samples=3).inputs()
    whole = fused_self_attention_routing(poses, weight, prior)
    alone = fused_self_attention_routing(poses[1:2], weight, prior)
    assert all(torch.equal(a, b[1:2]) for a, b in zip(alone, whole, strict=True))


@pytest.mark.parametrize("matrices", [6, 2])
def test_a_layer_answers_the_same_with_the_kernel(matrices):
    torch.manual_seed(0)
    layer = FcCaps(6, 4, 3, 5, routing="self_attention", matrices=matrices)
    torch.nn.init.normal_(layer.routing.prior)
    children = Capsules(torch.randn(2, 6, 3), torch.rand(2, 6))
    assert_answers_alike(layer, children, rtol=1e-4, atol=1e-5)
    couplings = []
    for layer.backend in ("torch", "fused"):
        with torch.no_grad():
            couplings.append(layer(children).coupling)
    torch.testing.assert_close(*couplings, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("has_prior", [False, True])
def test_the_operator_announces_the_shapes_it_returns(has_prior):
    parents = torch.rand(2, 5, 4)
    children = torch.rand(3, 2, 2, 5, 4), torch.rand(6, 5) if has_prior else None
    kept = torch.rand(2, 6, 5), parents, parents
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(function._attend_op, children, **checks)
    torch.library.opcheck(
        function._attend_backward_op, (parents, torch.rand(2, 5), *children, *kept), **checks
    )
