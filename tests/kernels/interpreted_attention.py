"""Self-attention routing in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import fused_self_attention_routing
from torchcaps.layers import FcCaps

from kernels.attention_reference import QUICK, AttentionCase, assert_as_accurate_as_the_plain_function

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
    with pytest.raises(UserError, match="no second derivatives"):
        torch.autograd.grad(fused_self_attention_routing(*inputs)[1].sum(), inputs, create_graph=True)


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
    results = []
    for backend in ("torch", "fused"):
        layer.backend = backend
        routed = layer(children, return_coupling=False)
        loss = routed.poses.square().sum() + routed.activations.sum()
        results.append([*routed[:2], *torch.autograd.grad(loss, list(layer.parameters()))])
        with torch.no_grad():
            results[-1].append(layer(children).coupling)
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
