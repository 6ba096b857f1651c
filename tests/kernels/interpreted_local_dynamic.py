"""Dynamic routing over stored votes in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.core import Capsules
from torchcaps.kernels import fused_local_dynamic_routing
from torchcaps.kernels.local_dynamic import launch, operators
from torchcaps.layers import LocalConvCaps2d, LocalDeconvCaps2d

from kernels import local_reference
from kernels.layer_reference import assert_answers_alike
from kernels.local_reference import LocalCase, assert_as_accurate_as_the_plain_function

# of a sum without a term, NumPy warns where a GPU does not
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),
]


@pytest.mark.parametrize("case", local_reference.QUICK.values(), ids=local_reference.QUICK)
def test_it_is_as_accurate_as_the_plain_function(case):
    assert_as_accurate_as_the_plain_function(case, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", local_reference.CASES.values(), ids=local_reference.CASES)
def test_it_is_as_accurate_as_the_plain_function_in_many_shapes(case):
    assert_as_accurate_as_the_plain_function(case)


def test_a_program_may_take_several_positions(monkeypatch):
    monkeypatch.setattr(launch, "choose_tile", lambda *sizes: launch.Tile(4, 1))
    assert_as_accurate_as_the_plain_function(LocalCase(positions=7), seeds=1)


def test_long_votes_and_zero_votes_stay_finite():
    for scale in (0.0, 1e4, 1e18):
        votes, bias = (scale * x.detach() for x in LocalCase(batch=1, positions=2).inputs())
        inputs = votes.requires_grad_(), bias.requires_grad_()
        routed = fused_local_dynamic_routing(*inputs)
        gradients = torch.autograd.grad(routed, inputs, [torch.ones_like(x) for x in routed])
        assert all(x.isfinite().all() for x in (*routed, *gradients))


def test_half_precision_votes_are_routed_in_float32():
    votes, bias = (x.detach() for x in LocalCase(batch=1, positions=2).inputs())
    votes = votes.bfloat16()
    poses, lengths = fused_local_dynamic_routing(votes, bias)
    exact = local_reference.plain_local_routing(votes.double(), bias.double())
    torch.testing.assert_close((poses, lengths), tuple(x.float() for x in exact))


@pytest.mark.parametrize(("kind", "checkpoint"), [(LocalConvCaps2d, True), (LocalDeconvCaps2d, False)])
def test_a_local_layer_answers_the_same_with_the_kernel(kind, checkpoint):
    torch.manual_seed(0)
    layer = kind(2, 3, 4, 5, kernel_size=4, stride=2, checkpoint=checkpoint)
    children = Capsules(torch.randn(1, 2, 4, 2, 4), torch.rand(1, 2, 4, 2))
    assert_answers_alike(layer, children, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_operator_announces_the_shapes_it_returns():
    votes, bias = (x.detach() for x in LocalCase(batch=1, positions=2).inputs())
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(operators._routing_op, (votes, bias, 2, True, False), **checks)
