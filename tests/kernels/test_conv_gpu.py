"""A convolution without padding on a GPU, against `F.conv2d` in float64."""

from dataclasses import replace

import pytest
import torch

from torchcaps.layers import PrimaryCaps
from torchcaps.models import create_model

from kernels.conv_reference import CASES, ConvCase, assert_as_accurate_as_a_convolution
from kernels.poison import poison_fresh_memory

pytestmark = pytest.mark.gpu

LARGE = {
    "DR-CapsNet on MNIST": ConvCase(128, 256, 256, 20, 20, 9),
    "DR-CapsNet on CIFAR-10": ConvCase(128, 256, 256, 16, 16, 9),
    "the last batch of an epoch": ConvCase(93, 256, 64, 20, 20, 9),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", (CASES | LARGE).values(), ids=CASES | LARGE)
def test_it_is_as_accurate_as_a_convolution(case, dtype, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_a_convolution(replace(case, dtype=dtype), "cuda")


def test_primary_capsules_learn_as_accurately_with_the_kernels_as_without():
    torch.manual_seed(0)
    layer = PrimaryCaps(64, 8, 8, kernel_size=9, stride=2).cuda().to(memory_format=torch.channels_last)
    features = torch.randn(100, 64, 13, 13, device="cuda")

    def learn(layer, features):
        features.requires_grad_()
        capsules = layer(features)
        loss = capsules.poses.square().sum() + capsules.activations.sum()
        return [*capsules, *torch.autograd.grad(loss, [features, *layer.parameters()])]

    with torch.autocast("cuda", torch.bfloat16):
        fused = learn(layer, features)
        layer.backend = "torch"
        plain = learn(layer, features)
    exact = learn(layer.double(), features.double().detach())
    for fused_one, plain_one, true in zip(fused, plain, exact, strict=True):
        assert (fused_one - true).norm() <= 2 * (plain_one - true).norm()


def test_a_network_takes_the_kernels_in_half_precision(monkeypatch):
    from torchcaps.kernels.strided_conv import launch

    calls = []

    def watch(name):
        call = getattr(launch, name)
        monkeypatch.setattr(launch, name, lambda *given: calls.append(name) or call(*given))

    for name in ("convolve", "grad_of_maps", "grad_of_bias"):
        watch(name)
    model = create_model("dr_capsnet_mnist").cuda()
    with torch.autocast("cuda", torch.bfloat16):
        model(torch.rand(64, 1, 28, 28, device="cuda")).activations.sum().backward()
    assert sorted(calls) == ["convolve", "grad_of_bias", "grad_of_maps"]
    model(torch.rand(64, 1, 28, 28, device="cuda"))
    assert len(calls) == 3
