"""LOBSTER's pull in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.kernels import fused_keep_zeros, fused_shrink, pull_unsupported_reason
from torchcaps.prune import Lobster, Pull

from kernels.pull_reference import (
    SHAPES,
    a_step,
    assert_same_bits,
    counted_launches,
    draw,
    strange,
    with_gradient,
)

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NumPy warns where a GPU does not
]


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_a_step_is_that_of_plain_operations_to_the_bit(shapes, monkeypatch):
    calls = counted_launches(monkeypatch)
    found = a_step(draw(shapes), is_plain=False)
    assert calls == ["shrink", "keep_zeros"]
    assert_same_bits(found, a_step(draw(shapes), is_plain=True))
    assert len(calls) == 2


def test_infinite_numbers_zeros_and_what_is_no_number_are_as_in_plain_operations():
    assert_same_bits(a_step(strange(), is_plain=False), a_step(strange(), is_plain=True))


def test_masks_are_small_for_the_kernel_and_of_the_kind_of_the_weights_for_plain_operations():
    single = draw([(4, 5)])
    double = [weight.double() for weight in single]
    assert [Pull(weights, Lobster())._masks[0].dtype for weights in (single, double)] == [
        torch.bool,
        torch.float64,
    ]


def test_masks_may_be_numbers_too():
    (weight,) = draw([(4, 5)])
    mask = (torch.rand(4, 5) < 0.5).float()
    expected = weight.detach() * mask
    fused_keep_zeros([weight], [mask])
    assert_same_bits([weight.detach()], [expected])


def test_a_gradient_that_lies_otherwise_in_memory_is_left_to_plain_operations(monkeypatch):
    calls = counted_launches(monkeypatch)
    weights, expected = draw([(6, 5, 3, 3), (4,)]), draw([(6, 5, 3, 3), (4,)])
    weights[0].grad = weights[0].grad.contiguous()
    assert_same_bits(a_step(weights, is_plain=False), a_step(expected, is_plain=True))
    assert calls == ["keep_zeros"]


def test_axes_of_length_one_may_have_any_step():
    weight, gradient = torch.randn(5, 1, 3, 3), torch.randn(5, 1, 3, 3)
    last = gradient.as_strided((5, 1, 3, 3), (9, 1, 3, 1))
    assert pull_unsupported_reason([weight], [last]) is None


@pytest.mark.parametrize(
    ("weight", "other", "message"),
    [
        (torch.zeros(4, 6), torch.zeros(6, 4).T, "lie in memory"),
        (torch.zeros(4, 6), torch.zeros(4, 5), "lie in memory"),
        (torch.zeros(4, 6)[:, ::2], torch.zeros(4, 6)[:, ::2], "lie in memory"),
        (torch.zeros(1).expand(3), torch.zeros(1).expand(3), "lie in memory"),
        (torch.zeros(4).half(), torch.zeros(4).half(), "float32"),
        (torch.zeros(4), torch.zeros(4).double(), "float32"),
        (torch.zeros(4).double(), torch.zeros(4).double(), "float32"),
        (torch.zeros(4), torch.zeros(4, device="meta"), "one device"),
    ],
)
def test_what_the_kernels_do_not_take_is_refused(weight, other, message):
    assert message in pull_unsupported_reason([weight], [other])
    with pytest.raises(ValueError, match=message):
        fused_shrink([weight], [other], torch.tensor(0.1))
    with pytest.raises(ValueError, match=message):
        fused_keep_zeros([weight], [other])


@pytest.mark.parametrize("strength", [torch.ones(2), torch.tensor(0.1).double()])
def test_the_strength_is_one_number_in_float32(strength):
    with pytest.raises(ValueError, match="one float32 number"):
        fused_shrink([torch.zeros(4)], [torch.zeros(4)], strength)


def test_a_derivative_that_still_needs_the_weights_is_refused():
    weight = with_gradient(torch.ones(3), torch.zeros(3))
    loss = weight.square().sum()
    fused_shrink([weight], [weight.grad], torch.tensor(0.1))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
