"""Convolutions written as products answer to `nn.Conv2d`."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from torchcaps.layers import PrimaryCaps
from torchcaps.layers.product_conv2d import (
    StemConv2d,
    convolve_by_product,
    convolve_map,
    covers_map,
    is_depthwise,
    project_map,
    reduce_map,
)
from torchcaps.models import create_model

from accuracy import assert_as_accurate_as


def assert_alike(got: Tensor, wanted: Tensor, inputs: list[Tensor]) -> None:
    """The same values, and the same gradients of the inputs."""
    torch.testing.assert_close(got, wanted)
    slope = torch.randn_like(wanted)
    torch.testing.assert_close(
        torch.autograd.grad(got, inputs, slope), torch.autograd.grad(wanted, inputs, slope)
    )


@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "size"), [(1, 9, 1, 28), (3, 9, 1, 24), (2, 5, 2, 13), (3, 4, 3, 12)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_the_product_of_windows_is_the_convolution(
    channels: int, kernel: int, stride: int, size: int, bias: bool
) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(channels, 6, kernel, stride, bias=bias).double()
    images = torch.randn(3, channels, size, size, dtype=torch.float64, requires_grad=True)
    wanted, got = conv(images), convolve_by_product(images, conv)
    assert got.is_contiguous(memory_format=torch.channels_last)
    assert_alike(got, wanted, [images, *conv.parameters()])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_half_precision_a_bias_is_learnt_as_accurately_as_by_a_convolution(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    images, results = torch.randn(3, 3, 12, 12).to(dtype), []
    for convolve, kind in (
        (convolve_by_product, dtype),
        (lambda images, conv: conv(images), dtype),
        (lambda images, conv: conv(images), torch.float64),
    ):
        torch.manual_seed(1)
        conv = nn.Conv2d(3, 6, 5).to(dtype).to(kind)
        maps = convolve(images.to(kind), conv)
        results.append([maps, *torch.autograd.grad(maps.square().sum(), list(conv.parameters()))])
    for candidate, plain, exact in zip(*results, strict=True):
        assert candidate.dtype == dtype
        assert_as_accurate_as(candidate, plain, exact)


def test_a_stem_has_the_parameters_of_a_convolution() -> None:
    stem, conv = StemConv2d(1, 4, 5), nn.Conv2d(1, 4, 5)
    stem.load_state_dict(conv.state_dict())
    images = torch.randn(2, 1, 9, 9)
    torch.testing.assert_close(stem(images), conv(images))


def steps_backwards(result: torch.Tensor) -> set[str]:
    """The names of the operations that a gradient of `result` goes through."""
    found, left = set(), [result.grad_fn]
    while left:
        step = left.pop()
        if step is not None and step not in found:
            found.add(step)
            left += [before for before, _ in step.next_functions]
    return {step.name() for step in found}


def test_a_product_rectified_in_place_has_its_gradient_copied() -> None:
    maps = convolve_by_product(torch.randn(2, 1, 9, 9), nn.Conv2d(1, 4, 5))
    assert "torch::autograd::CopySlices" in steps_backwards(maps.relu_())


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["dr_capsnet_tiny_test", "gamma_capsnet_tiny_test", "efficient_capsnet_tiny_test"]
)
def test_on_a_gpu_no_gradient_of_a_stem_is_copied(name: str) -> None:
    model = create_model(name).cuda()
    output = model(torch.rand(2, *model.image_shape, device="cuda"))
    assert "torch::autograd::CopySlices" not in steps_backwards(output.activations)


def test_mixed_precision_reaches_the_product() -> None:
    conv = nn.Conv2d(1, 4, 5)
    images = torch.randn(2, 1, 9, 9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = convolve_by_product(images, conv)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), conv(images), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("bias", [True, False])
def test_a_depthwise_kernel_as_wide_as_the_map_is_a_weighted_sum(bias: bool) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(8, 8, 5, groups=8, bias=bias).double()
    features = torch.randn(3, 8, 5, 5, dtype=torch.float64, requires_grad=True)
    wanted, got = conv(features), reduce_map(features, conv)
    assert_alike(got, wanted, [features, *conv.parameters()])


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("bias", [True, False])
def test_a_kernel_as_wide_as_the_map_is_a_product(order: torch.memory_format, bias: bool) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(8, 6, (3, 5), bias=bias).double().to(memory_format=order)
    features = torch.randn(4, 8, 3, 5, dtype=torch.float64, requires_grad=True)
    wanted, got = conv(features), project_map(features, conv)
    assert_alike(got, wanted, [features, *conv.parameters()])


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_a_product_of_a_map_copies_no_kernel(order: torch.memory_format) -> None:
    conv = nn.Conv2d(8, 6, 3).to(memory_format=order)
    result = project_map(torch.randn(2, 8, 3, 3), conv)
    assert not any("Clone" in step for step in steps_backwards(result))


@pytest.mark.parametrize(("types", "groups"), [(3, 1), (3, 2), (4, 8), (2, 8)])
def test_primary_capsules_of_a_whole_map_are_those_of_the_convolution(types: int, groups: int) -> None:
    torch.manual_seed(0)
    primary = PrimaryCaps(8, types, 4, kernel_size=(2, 3), groups=groups).double()
    features = torch.randn(4, 8, 2, 3, dtype=torch.float64)
    got = primary(features)
    primary.conv.register_forward_hook(lambda *_: None)  # who watches a convolution sees it called
    torch.testing.assert_close(got, primary(features))


def test_only_a_kernel_of_the_map_s_size_covers_it() -> None:
    features = torch.randn(1, 8, 5, 5)
    assert covers_map(nn.Conv2d(8, 8, 5, groups=8), features)
    assert covers_map(nn.Conv2d(8, 16, 5), features)
    assert not covers_map(nn.Conv2d(8, 8, 3, groups=8), features)
    assert not covers_map(nn.Conv2d(8, 8, 5, groups=8, padding=1), features)


def test_a_depthwise_convolution_has_one_kernel_for_each_channel() -> None:
    assert is_depthwise(nn.Conv2d(8, 8, 5, groups=8))
    assert not is_depthwise(nn.Conv2d(8, 8, 5))
    assert not is_depthwise(nn.Conv2d(8, 16, 5, groups=8))


@pytest.mark.gpu
def test_the_product_is_exact_enough_on_a_gpu() -> None:
    torch.manual_seed(0)
    conv, images = nn.Conv2d(1, 32, 9), torch.randn(4, 1, 28, 28)
    exact = nn.Conv2d.forward(conv.double(), images.double())
    got = convolve_by_product(images.cuda(), conv.float().cuda())
    torch.testing.assert_close(got.cpu().double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_a_convolution_that_covers_its_map_has_the_gradients_of_pytorch(bias):
    conv = nn.Conv2d(6, 6, (3, 4), groups=6, bias=bias).double()
    maps = torch.randn(5, 6, 3, 4, dtype=torch.float64, requires_grad=True)
    inputs, slope = [maps, *conv.parameters()], torch.randn(5, 6, 1, 1, dtype=torch.float64)
    plain, mine = (
        torch.autograd.grad(call(maps), inputs, slope) for call in (conv, partial(convolve_map, conv=conv))
    )
    torch.testing.assert_close(mine, plain)
    assert torch.equal(convolve_map(maps, conv), conv(maps))


def test_the_gradients_of_a_convolution_that_covers_its_map_are_as_accurate_as_those_of_pytorch():
    conv, maps, slope = nn.Conv2d(16, 16, 9, groups=16), torch.randn(32, 16, 9, 9), torch.randn(32, 16, 1, 1)

    def grads(call, conv, maps, slope):
        maps = maps.clone().requires_grad_()
        return torch.autograd.grad(call(maps), [maps, *conv.parameters()], slope)

    mine, plain = (grads(call, conv, maps, slope) for call in (partial(convolve_map, conv=conv), conv))
    exact = grads(conv.double(), conv, maps.double(), slope.double())
    for each in zip(mine, plain, exact, strict=True):
        assert_as_accurate_as(*each)


def test_primary_capsules_that_learn_on_a_cpu_take_it_and_need_no_copy_of_its_gradient():
    caps, maps = PrimaryCaps(8, 2, 4, kernel_size=5, groups=8).train(), torch.randn(3, 8, 5, 5)
    maps = maps.contiguous(memory_format=torch.channels_last).requires_grad_()
    (grad,) = torch.autograd.grad(caps(maps)[0].sum(), maps)
    assert grad.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(caps(maps)[0], caps.eval()(maps)[0], rtol=0, atol=0)


class _OnGPU(torch.Tensor):
    """A tensor of the CPU that is taken for one of a GPU."""

    is_cuda = property(lambda self: True)


@pytest.mark.parametrize("kind", [torch.Tensor, _OnGPU])
def test_hooks_of_a_convolution_that_covers_its_map_are_called(kind):
    caps, calls = PrimaryCaps(8, 2, 4, kernel_size=5, groups=8), []
    maps = torch.randn(3, 8, 5, 5).as_subclass(kind)
    unseen = caps._convolve(maps)
    caps.conv.register_forward_pre_hook(lambda *seen: calls.append(seen))  # as old-style pruning has them
    torch.testing.assert_close(caps._convolve(maps), unseen)
    assert len(calls) == 1


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap, torch.func.jacfwd])
def test_primary_capsules_that_cover_their_map_can_be_transformed_while_they_learn(transform):
    caps, maps = PrimaryCaps(8, 2, 4, kernel_size=5, groups=8).train(), torch.randn(3, 8, 5, 5)

    def total(maps):
        return caps(maps.view(-1, 8, 5, 5)).activations.sum()

    learning = transform(total)(maps)
    caps.eval()
    torch.testing.assert_close(learning, transform(total)(maps))


def test_a_network_without_memory_is_convolved_all_the_same() -> None:
    model = create_model("dr_capsnet_mnist").to("meta")
    assert model(torch.empty(64, *model.image_shape, device="meta")).activations.shape == (64, 10)
