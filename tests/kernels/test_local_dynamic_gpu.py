"""Fused dynamic routing over stored votes on a GPU, against the plain function in float64."""

import pytest
import torch

from torchcaps.kernels import fused_local_dynamic_routing

from kernels import local_reference
from kernels.local_reference import LocalCase, assert_as_accurate_as_the_plain_function
from kernels.poison import poison_fresh_memory

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("exact_products")]

LARGE = {
    "many parents": LocalCase(batch=4, in_caps=4, positions=256, out_caps=8, pose=32),
    "many children": LocalCase(batch=4, in_caps=16, positions=256, out_caps=4, pose=32),
    "long poses": LocalCase(batch=4, in_caps=8, positions=64, out_caps=8, pose=64),
    "classes": LocalCase(batch=4, in_caps=3, positions=4096, out_caps=1, pose=16),
    "odd": LocalCase(batch=3, in_caps=7, positions=123, out_caps=3, pose=11, gradient="last", leaky=True),
}


@pytest.mark.parametrize("case", (local_reference.QUICK | LARGE).values())
def test_it_is_as_accurate_as_the_plain_function(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_function(case, "cuda")


def test_half_precision_votes_are_routed_in_float32():
    votes, bias = (x.detach() for x in LARGE["many children"].inputs(device="cuda"))
    votes = votes.bfloat16()
    routed = fused_local_dynamic_routing(votes, bias)
    exact = local_reference.plain_local_routing(votes.double(), bias.double())
    torch.testing.assert_close(routed, tuple(x.float() for x in exact))
