"""The fused squash and fused self-attention where nothing may be launched: their tensors hold no numbers."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

from torchcaps.core import squash, squash_exponential
from torchcaps.kernels import availability, fused_self_attention_routing, fused_squash


@pytest.fixture(autouse=True)
def kernels_take_tensors_of_the_cpu(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    monkeypatch.setattr(availability, "_HAS_TRITON", True)


def shapes_of(tensors):
    return [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]


@pytest.mark.parametrize("function", [squash, squash_exponential])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_squash_of_fake_tensors_launches_nothing(function, dtype):
    with FakeTensorMode():
        poses = torch.empty(2, 3, 4, 8, dtype=dtype, requires_grad=True)
        outputs = fused_squash(poses, function)
        gradients = torch.autograd.grad(outputs, poses, outputs)
    assert shapes_of(outputs) == [((2, 3, 4, 8), torch.float32), ((2, 3, 4), torch.float32)]
    assert shapes_of(gradients) == [((2, 3, 4, 8), dtype)]


@pytest.mark.parametrize("has_prior", [True, False])
def test_self_attention_of_fake_tensors_launches_nothing(has_prior):
    with FakeTensorMode():
        poses, weight = torch.empty(5, 6, 8, requires_grad=True), torch.empty(3, 8, 4, 16, requires_grad=True)
        inputs = (poses, weight, torch.empty(6, 4, requires_grad=True))[: 2 + has_prior]
        routed, lengths, coupling = fused_self_attention_routing(*inputs)
        gradients = torch.autograd.grad((routed, lengths), inputs, (routed, lengths))
    assert [tuple(each.shape) for each in (routed, lengths, coupling)] == [(5, 4, 16), (5, 4), (5, 6, 4)]
    assert shapes_of(gradients) == shapes_of(inputs)
