"""Fused self-attention routing on a GPU, against the plain function in float64."""

import pytest
import torch

from torchcaps.models import create_model

from kernels.attention_reference import QUICK, AttentionCase, assert_as_accurate_as_the_plain_function
from kernels.poison import poison_fresh_memory

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("exact_products")]

LARGE = {
    "Efficient-CapsNet": AttentionCase(128, 16, 16, 8, 10, 16),
    "many children": AttentionCase(32, 1152, 1152, 8, 10, 16),
    "many parents": AttentionCase(4, 24, 24, 8, 100, 16),
    "shared matrices": AttentionCase(16, 288, 32, 8, 7, 11),
}


@pytest.mark.parametrize("case", (QUICK | LARGE).values(), ids=QUICK | LARGE)
def test_it_is_as_accurate_as_the_plain_function(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_function(case, "cuda")


def test_efficient_capsnet_learns_the_same_with_and_without_its_kernels():
    torch.manual_seed(0)
    network = create_model("efficient_capsnet_mnist").cuda().eval()
    images, results = torch.rand(16, 1, 28, 28, device="cuda"), []
    for backend in ("torch", "auto"):
        for module in network.modules():
            module.backend = backend
        lengths = network(images).activations
        results.append([lengths, *torch.autograd.grad(lengths.square().sum(), list(network.parameters()))])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)
