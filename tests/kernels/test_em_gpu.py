"""Fused EM routing on a GPU, against the plain layers in float64."""

import pytest
import torch

from torchcaps.core import Capsules

from kernels import em_reference
from kernels.em_reference import EMCase
from kernels.layer_reference import (
    assert_a_captured_step_replays,
    assert_a_model_learns_the_same_with_kernels,
    assert_as_accurate_as_the_plain_layer,
)
from kernels.poison import poison_fresh_memory

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("exact_products")]

MATRICES = {"rows": 4, "in_columns": 4, "out_columns": 4}
LARGE = {
    "64/8/16/16, first": EMCase(batch=16, height=14, width=14, in_types=8, out_types=16, **MATRICES),
    "64/8/16/16, second": EMCase(
        batch=16, height=6, width=6, in_types=16, out_types=16, stride=1, **MATRICES
    ),
    "64/8/16/16, classes": EMCase(
        batch=16, height=4, width=4, in_types=16, out_types=5, kernel=0, coordinates=True, **MATRICES
    ),
    "32/32/32/32": EMCase(batch=3, height=14, width=14, in_types=32, out_types=32, **MATRICES),
}


SMALL = ["stride beyond the window", "shared by types", "vectors", "one iteration"]  # each is compiled anew


@pytest.mark.parametrize("name", SMALL)
def test_em_is_as_accurate_as_the_plain_layer(name):
    assert_as_accurate_as_the_plain_layer(em_reference.CASES[name], "cuda", seeds=15)


@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_em_of_real_sizes_is_as_accurate_as_the_plain_layer(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_layer(case, "cuda", seeds=5)


@pytest.mark.parametrize(("name", "side"), [("em_capsnet_small", 32), ("segcaps_r3", 64)])
def test_a_model_learns_the_same_with_and_without_the_kernels(name, side):
    assert_a_model_learns_the_same_with_kernels(name, image_size=side)


def test_two_calls_give_the_same_bits():
    first, second = (
        LARGE["64/8/16/16, first"].outputs_and_gradients("fused", torch.float32, "cuda", 1) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_memory_stays_far_below_the_votes():
    case = EMCase(batch=128, height=14, width=14, in_types=8, out_types=16, **MATRICES)
    peaks = []
    for backend in ("fused", "torch"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        case.outputs_and_gradients(backend, torch.float32, "cuda", 1)
        peaks.append(torch.cuda.max_memory_allocated() - before)
    fused, plain = peaks
    assert fused <= 512 << 20
    assert 3 * fused <= plain


@pytest.mark.compile
def test_layers_compile_into_one_graph():
    case = EMCase(batch=4, height=6, width=6, in_types=4, out_types=4, **MATRICES)
    layer = case.layer().cuda()
    children = Capsules(*(x.cuda() for x in case.children(0)))
    compiled = torch.compile(lambda x: layer(x, return_coupling=False).poses.square().sum(), fullgraph=True)
    gradients = [
        torch.autograd.grad(value, list(layer.parameters()), allow_unused=True)
        for value in (compiled(children), layer(children, return_coupling=False).poses.square().sum())
    ]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["em_capsnet_small", "segcaps_r3"])
def test_a_captured_graph_replays_a_step(name):
    assert_a_captured_step_replays(name, batch=2)
