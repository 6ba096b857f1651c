"""Why a layer does without the fused kernels of scaled-distance routing."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import (
    DistanceSettings,
    availability,
    fused_scaled_distance_routing,
    scaled_distance_unsupported_reason,
)
from torchcaps.layers import FcCaps

from kernels.distance_reference import DistanceCase


def like(*shape, dtype=torch.float32):
    return torch.zeros((), dtype=dtype).expand(shape)


def test_a_cpu_is_named_as_the_reason():
    inputs = like(1, 9, 4), like(1, 9), like(9, 4, 3, 8)
    assert "CUDA only" in scaled_distance_unsupported_reason(inputs[0], inputs[2])
    with pytest.raises(ValueError, match="CUDA only"):
        fused_scaled_distance_routing(*inputs, settings=DistanceSettings(1.0))


def test_sizes_and_dtypes_beyond_the_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    poses, weight = like(1, 9, 4), like(9, 4, 64, 32)
    assert scaled_distance_unsupported_reason(poses, weight) is None
    assert "float64" in scaled_distance_unsupported_reason(poses.double(), weight)
    assert "65 parents" in scaled_distance_unsupported_reason(poses, like(9, 4, 65, 32))
    assert "not 33" in scaled_distance_unsupported_reason(like(1, 9, 33), like(9, 33, 3, 8))
    assert "2**31" in scaled_distance_unsupported_reason(like(2**15, 2**14, 4), weight)
    assert "65536 samples" in scaled_distance_unsupported_reason(like(2**16, 9, 4), like(9, 4, 3, 8))
    assert "nothing" in scaled_distance_unsupported_reason(like(0, 9, 4), weight)


def test_a_layer_falls_back_and_says_why():
    layer, children = DistanceCase().layer(), Capsules(*DistanceCase().children())
    assert layer(children, return_coupling=False).coupling is not None
    assert "CUDA only" in layer.fallback_reason(children, return_coupling=False)
    assert "gradients" in layer.fallback_reason(children)
    layer.backend = "fused"
    with pytest.raises(UserError, match="CUDA only"):
        layer(children, return_coupling=False)


def test_settings_without_a_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    children = Capsules(torch.rand(2, 6, 4), torch.rand(2, 6))

    def reason(**settings):
        return FcCaps(6, 3, 4, 4, **settings).fallback_reason(children, return_coupling=False)

    assert "matrices" in reason(routing="scaled_distance", pose_rows=2)
    watched = FcCaps(6, 3, 4, 4, routing="scaled_distance")
    watched.routing.register_forward_hook(lambda *_: None)
    assert "hook" in watched.fallback_reason(children, return_coupling=False)
