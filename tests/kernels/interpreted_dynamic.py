"""The Triton kernels in Triton's interpreter, on the CPU; `test_dynamic_triton.py` runs this file on its own.

The interpreter must be chosen before Triton is imported, so these tests need a process of their own.
"""

from dataclasses import replace

import pytest
import torch
import triton.runtime.interpreter as interpreter

from torchcaps.kernels import dynamic, dynamic_triton, fused_dynamic_coupling, fused_dynamic_routing
from torchcaps.kernels.dynamic_triton import Tile

from kernels.poison import poison_fresh_memory
from kernels.routing_reference import Case, assert_as_accurate_as_the_textbook, textbook_routing

SMALL = Case(in_caps=5, matrices=5, in_pose=3, out_caps=3)
SPLIT = {"warps": 1, "pool": Tile(2), "pose_grad": Tile(2)}  # several blocks of children for each program
CASES = {
    "odd": (SMALL, {}),
    "several blocks": (SMALL, SPLIT),
    "several blocks and slots": (SMALL, {**SPLIT, "warps": 3}),
    "last": (replace(SMALL, gradient="last"), SPLIT),
    "leaky, no bias": (replace(SMALL, leaky=True, bias=False), SPLIT),
    "one iteration": (replace(SMALL, iterations=1, leaky=True), {}),
    "four iterations": (replace(SMALL, iterations=4), {}),
    "two tiles of samples": (replace(SMALL, batch=18), {"weight_grad": Tile(4)}),
    "shared over positions": (replace(SMALL, in_caps=6, matrices=2), {"warps": 40}),
    "one shared matrix": (replace(SMALL, in_caps=6, matrices=1), {"warps": 40}),
    "one class": (replace(SMALL, out_caps=1), {}),
    "one sample, scalars": (replace(SMALL, batch=1, in_pose=1, pose=1), {}),
}


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor, scope):
        patch(tensor, scope)  # its own `__index__` relies on a conversion that numpy 2.4 has removed
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor)
    monkeypatch.setattr(dynamic, "_backend", lambda poses, weight: dynamic_triton)
    monkeypatch.setattr(dynamic_triton, "override", {})
    poison_fresh_memory(monkeypatch)


@pytest.mark.parametrize(("case", "tiles"), CASES.values(), ids=CASES)
def test_it_is_as_accurate_as_the_textbook_loop(case, tiles):
    dynamic_triton.override.update(tiles)
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, seeds=2)


@pytest.mark.parametrize("case", [SMALL, replace(SMALL, leaky=True, in_caps=6, matrices=3)])
def test_couplings_are_those_of_the_last_iteration(case):
    inputs = case.inputs(torch.float32)
    coupling = fused_dynamic_coupling(*inputs, iterations=case.iterations, leaky=case.leaky)
    torch.testing.assert_close(coupling, textbook_routing(*inputs, **case.routing)[1])


def test_two_calls_give_the_same_bits():
    inputs = SMALL.inputs(torch.float32)
    first, second = (fused_dynamic_routing(*inputs, **SMALL.routing) for _ in range(2))
    assert torch.equal(first, second)
