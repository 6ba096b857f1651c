"""A convolution without padding in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch
from torch.nn import functional as F

from torchcaps.kernels import fused_strided_conv, strided_conv_unsupported_reason
from torchcaps.kernels.strided_conv import function, launch
from torchcaps.layers import PrimaryCaps

from kernels.conv_reference import CASES, ConvCase, assert_as_accurate_as_a_convolution

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NumPy warns where a GPU does not
]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_as_accurate_as_a_convolution(case):
    assert_as_accurate_as_a_convolution(case)


@pytest.mark.parametrize("processors", [1, 7, 132])
def test_a_sum_may_be_divided_into_any_number_of_slots(processors, monkeypatch):
    monkeypatch.setattr(launch, "processors", lambda device: processors)
    assert_as_accurate_as_a_convolution(ConvCase(side=5, channels=32))


@pytest.mark.parametrize(("tiles", "slots"), [(36, 7), (132, 1), (1152, 1), (1, 12)])
def test_a_small_batch_is_divided_among_more_programs_than_a_large_one(tiles, slots):
    assert launch._best_slots(tiles, 132) == slots


def test_the_large_tiles_of_hopper_give_the_same(monkeypatch):
    monkeypatch.setattr(launch, "shared_memory", lambda device: 227 << 10)
    assert_as_accurate_as_a_convolution(ConvCase(channels=64, out=64, height=5, width=5))


def test_a_bias_in_float32_gets_a_gradient_in_float32():
    maps, weight, bias = ConvCase().inputs(torch.float16)
    bias = bias.detach().float().requires_grad_()
    result = fused_strided_conv(maps, weight, bias, 2)
    slope = torch.randn_like(result)
    (found,) = torch.autograd.grad(result, bias, slope)
    torch.testing.assert_close(found, slope.float().sum((0, 2, 3)))


def test_only_the_gradients_that_are_asked_for_are_computed(monkeypatch):
    monkeypatch.setattr(launch, "grad_of_maps", lambda *given: pytest.fail("nobody asked"))
    maps, weight, bias = ConvCase().inputs(torch.float16)
    result = fused_strided_conv(maps.detach(), weight, bias, 2)
    assert all(each is not None for each in torch.autograd.grad(result.sum(), [weight, bias]))


def test_its_second_derivative_is_that_of_a_convolution():
    second = []
    for convolve in (fused_strided_conv, F.conv2d):
        maps, weight, bias = ConvCase().inputs(torch.float16)
        result = convolve(maps, weight, bias, 2)
        (gradient,) = torch.autograd.grad((0.01 * result).square().sum(), weight, create_graph=True)
        second += torch.autograd.grad(gradient.square().sum(), maps)
    torch.testing.assert_close(*second, rtol=1e-2, atol=1e-3)


def test_channels_may_be_first_or_last_in_memory():
    maps, weight, bias = ConvCase().inputs(torch.float16)
    last = [each.to(memory_format=torch.channels_last) for each in (maps, weight)]
    found = fused_strided_conv(maps, weight, bias, 2)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found, fused_strided_conv(*last, bias, 2))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"batch": 63}, "at least 64 maps"),
        ({"channels": 12}, "multiples of 16"),
        ({"side": 9}, "larger than the map"),
        ({"dtype": torch.float32}, "half precision"),
    ],
)
def test_what_it_cannot_take_is_said(change, reason):
    case = ConvCase(**change)
    maps, weight, bias = case.inputs(case.dtype)
    assert reason in strided_conv_unsupported_reason(maps, weight)
    with pytest.raises(ValueError, match=reason):
        fused_strided_conv(maps, weight, bias, 2)


def test_kernels_whose_places_are_no_32_bit_numbers_are_refused():
    maps, weight = (torch.empty(1, device="meta", dtype=torch.float16) for _ in range(2))
    reason = strided_conv_unsupported_reason(maps.expand(64, 8192, 9, 9), weight.expand(8192, 8192, 9, 9))
    assert "at most 2,147,483,647 weights" in reason


def test_primary_capsules_learn_the_same_with_the_kernels(monkeypatch):
    calls = []
    convolve = launch.convolve
    monkeypatch.setattr(launch, "convolve", lambda *given: calls.append(given) or convolve(*given))
    torch.manual_seed(0)
    layer, features, results = PrimaryCaps(16, 4, 4, kernel_size=9, stride=2), torch.randn(64, 16, 11, 11), []
    for backend in ("torch", "auto"):
        layer.backend = backend
        with torch.autocast("cpu", torch.float16):
            capsules = layer(features)
        loss = capsules.poses.square().sum() + capsules.activations.sum()
        results.append([*capsules, *torch.autograd.grad(loss, list(layer.parameters()))])
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)
    assert len(calls) == 1


@pytest.mark.parametrize(("side", "stride"), [(3, 2), (9, 1)])
def test_convolutions_for_which_they_were_not_timed_do_without_the_kernels(side, stride, monkeypatch):
    monkeypatch.setattr(launch, "convolve", lambda *given: pytest.fail("it was not timed"))
    layer = PrimaryCaps(16, 4, 4, kernel_size=side, stride=stride)
    with torch.autocast("cpu", torch.float16):
        layer(torch.randn(64, 16, 11, 11))


@pytest.mark.slow
def test_the_operators_announce_the_shapes_they_return():
    maps, weight, bias = (each.detach() for each in ConvCase().inputs(torch.float16))
    result = function._conv_op(maps, weight, bias, 2)
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(function._conv_op, (maps, weight, bias, 2), **checks)
    torch.library.opcheck(function._grad_maps_op, (result, weight, maps, 2), **checks)
    torch.library.opcheck(function._grad_bias_op, (result,), **checks)
