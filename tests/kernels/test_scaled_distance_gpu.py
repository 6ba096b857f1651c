"""Fused scaled-distance routing on a CUDA device: the real kernels, at real sizes."""

from dataclasses import replace

import pytest
import torch

from torchcaps.core import Capsules

from kernels.distance_reference import CASES, QUICK, DistanceCase
from kernels.layer_reference import (
    assert_a_captured_step_replays,
    assert_a_model_learns_the_same_with_kernels,
    assert_as_accurate_as_the_plain_layer,
)
from kernels.poison import poison_fresh_memory

pytestmark = pytest.mark.gpu

HIDDEN = DistanceCase(batch=128, in_caps=1152, in_pose=8, out_caps=32, pose=8, scale=0.1)
LARGE = {
    "hidden capsules of gamma-CapsNet": HIDDEN,
    "class capsules of gamma-CapsNet": replace(HIDDEN, in_caps=32, out_caps=10, pose=16),
    "hidden capsules as in the thesis": replace(HIDDEN, scope="batch", gradient="last"),
    "shared over positions": replace(HIDDEN, batch=33, matrices=32),
    "one shared matrix": replace(HIDDEN, batch=17, matrices=1),
    "one sample": replace(HIDDEN, batch=1),
    "10000 children": replace(HIDDEN, batch=3, in_caps=10000),
    "64 parents of 32": replace(HIDDEN, batch=9, in_caps=100, out_caps=64, pose=32),
    "1000 parents": replace(HIDDEN, batch=3, in_caps=50, out_caps=1000, pose=2),
    "long poses below": replace(HIDDEN, batch=17, in_caps=50, in_pose=32),
    "unequal poses": replace(HIDDEN, batch=17, in_caps=51, in_pose=3, out_caps=43, pose=29),
}


@pytest.mark.parametrize("case", (QUICK | CASES).values(), ids=QUICK | CASES)
def test_it_is_as_accurate_as_the_plain_layer(case):
    assert_as_accurate_as_the_plain_layer(case, "cuda", seeds=25)


@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_real_sizes_are_as_accurate_as_the_plain_layer(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_layer(case, "cuda", seeds=7)


@pytest.mark.parametrize("iterations", range(1, 11))
def test_any_number_of_iterations_is_as_accurate_as_the_plain_layer(iterations):
    case = replace(HIDDEN, batch=9, in_caps=60, out_caps=12, iterations=iterations)
    assert_as_accurate_as_the_plain_layer(case, "cuda", seeds=25)


def children_on_gpu(case):
    return Capsules(*(x.cuda() for x in case.children()))


def test_couplings_are_those_of_the_last_iteration():
    layer, children = HIDDEN.layer().cuda(), children_on_gpu(HIDDEN)
    results = []
    for layer.backend in ("torch", "fused"):
        with torch.no_grad():
            results.append(layer(children))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_two_calls_give_the_same_bits():
    first, second = (HIDDEN.outputs_and_gradients("fused", torch.float32, "cuda", 1) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_autocast_changes_nothing():
    layer, children = HIDDEN.layer().cuda(), children_on_gpu(HIDDEN)
    layer.backend = "fused"
    with torch.autocast("cuda", dtype=torch.bfloat16):
        cast = layer(children, return_coupling=False).poses
    assert torch.equal(cast, layer(children, return_coupling=False).poses)


def test_memory_stays_far_below_the_votes():
    layer, children = HIDDEN.layer().cuda(), children_on_gpu(HIDDEN)
    layer.backend = "fused"
    children.poses.requires_grad_()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.autograd.grad(
        layer(children, return_coupling=False).poses.sum(), [children.poses, *layer.parameters()]
    )
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before <= 64 << 20


@pytest.mark.parametrize("name", ["gamma_capsnet_mnist", "gamma_capsnet_mnist_thesis"])
def test_a_model_learns_the_same_with_and_without_the_kernel(name):
    assert_a_model_learns_the_same_with_kernels(name)


def test_a_captured_graph_replays_a_step():
    assert_a_captured_step_replays("gamma_capsnet_mnist", batch=8)


@pytest.mark.compile
def test_a_layer_compiles_into_one_graph():
    case = replace(HIDDEN, batch=4)
    layer, children = case.layer().cuda(), children_on_gpu(case)
    layer.backend = "fused"
    compiled = torch.compile(lambda x: layer(x, return_coupling=False).poses.square().sum(), fullgraph=True)
    gradients = [
        torch.autograd.grad(value, list(layer.parameters()))
        for value in (compiled(children), layer(children, return_coupling=False).poses.square().sum())
    ]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
