"""Why a local layer does without its fused kernel; the interpreted and GPU tests run the kernel."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import availability, fused_local_dynamic_routing, local_dynamic_unsupported_reason
from torchcaps.layers import LocalConvCaps2d

CHILDREN = Capsules(torch.rand(1, 4, 4, 2, 3), torch.rand(1, 4, 4, 2))


def test_a_cpu_is_named_as_the_reason():
    with pytest.raises(ValueError, match="CUDA only"):
        fused_local_dynamic_routing(torch.rand(1, 2, 3, 4, 5))
    with pytest.raises(ValueError, match="at least 1, got 0"):
        fused_local_dynamic_routing(torch.rand(1, 2, 3, 4, 5), iterations=0)


def test_sizes_and_dtypes_beyond_the_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    votes = torch.zeros(1, 16, 2, 8, 64)
    assert local_dynamic_unsupported_reason(votes) is None
    assert "17x8x64" in local_dynamic_unsupported_reason(torch.zeros(1, 17, 2, 8, 64))
    assert "float64" in local_dynamic_unsupported_reason(votes.double())


def test_a_layer_falls_back_and_says_why():
    layer = LocalConvCaps2d(2, 3, 3, 4, kernel_size=3)
    assert layer(CHILDREN, return_coupling=False).coupling is not None
    assert "CUDA only" in layer.fallback_reason(CHILDREN, return_coupling=False)
    assert "couplings were asked for" in layer.fallback_reason(CHILDREN)
    layer.backend = "fused"
    with pytest.raises(UserError, match="CUDA only"):
        layer(CHILDREN, return_coupling=False)
    layer.routing.register_forward_hook(lambda *_: None)
    assert "hook" in layer.fallback_reason(CHILDREN, return_coupling=False)


def test_a_routing_without_a_kernel_is_named():
    layer = LocalConvCaps2d(2, 3, 3, 4, kernel_size=3, routing="em")
    assert "EMRouting" in layer.fallback_reason(CHILDREN, return_coupling=False)
