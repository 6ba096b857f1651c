"""What fused EM routing says where it cannot run; `interpreted_em.py` and `test_em_gpu.py` run it."""

import pytest
import torch

from torchcaps.core import Capsules, UserError
from torchcaps.kernels import EMScales, availability, em_unsupported_reason, fused_em_routing
from torchcaps.layers import ConvCaps2d, FcCaps

from kernels.em_reference import EMCase


def like(*shape, dtype=torch.float32):
    return torch.zeros((), dtype=dtype).expand(shape)


def test_a_cpu_is_named_as_the_reason():
    assert "CUDA only" in em_unsupported_reason(like(1, 1, 1, 9, 16), like(9, 4, 2, 4))
    with pytest.raises(ValueError, match="CUDA only"):
        fused_em_routing(
            like(1, 1, 1, 9, 16),
            like(1, 1, 1, 9),
            like(9, 4, 2, 4),
            costs=(like(2), like(2)),
            window=(3, 1),
            scales=EMScales(3, 1.0, 0.1, 1.0),
        )


def test_sizes_and_dtypes_beyond_the_kernel_are_named(monkeypatch):
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")
    weight = like(9, 4, 2, 4)
    assert em_unsupported_reason(like(1, 1, 1, 9, 16), weight) is None
    assert "float64" in em_unsupported_reason(like(1, 1, 1, 9, 16, dtype=torch.float64), weight)
    assert "17x17" in em_unsupported_reason(like(1, 1, 1, 9, 17), like(9, 1, 2, 17))
    assert "257" in em_unsupported_reason(like(1, 1, 1, 9, 16), like(9, 4, 257, 4))
    assert "2**31" in em_unsupported_reason(like(2**20, 1, 1, 2**7, 16), weight)
    assert "nothing" in em_unsupported_reason(like(0, 1, 1, 9, 16), weight)


CASES = [EMCase(), EMCase(competing=False), EMCase(kernel=0, height=2, width=2, coordinates=True)]


@pytest.mark.parametrize("case", CASES)
def test_layers_fall_back_and_say_why(case):
    layer, children = case.layer(), Capsules(*case.children(0))
    assert layer(children, return_coupling=False).coupling is not None
    assert "CUDA only" in layer.fallback_reason(children, return_coupling=False)
    assert "couplings were asked for" in layer.fallback_reason(children)
    layer.backend = "fused"
    with pytest.raises(UserError, match="CUDA only"):
        layer(children, return_coupling=False)


CASES = [EMCase(), EMCase(competing=False), EMCase(kernel=0, height=2, width=2, coordinates=True)]


@pytest.mark.parametrize("case", CASES)
def test_a_watched_routing_is_not_replaced(case):
    layer, children = case.layer(), Capsules(*case.children(0))
    inner = getattr(layer.routing, "routing", layer.routing)
    inner.register_forward_hook(lambda *_: None)
    assert "hook" in layer.fallback_reason(children, return_coupling=False)


def test_a_routing_without_a_kernel_is_named():
    children = Capsules(torch.rand(1, 3, 3, 2, 4), torch.rand(1, 3, 3, 2))
    matrices = ConvCaps2d(2, 3, 4, 4, kernel_size=3, pose_rows=2)
    assert "matrices" in matrices.fallback_reason(children, return_coupling=False)
    shared = FcCaps(18, 3, 4, 4, routing="self_attention")
    assert "SelfAttentionRouting" in shared.fallback_reason(children, return_coupling=False)
