"""The fused layer on a CUDA device: the real kernels, at real sizes."""

from dataclasses import replace

import pytest
import torch

from torchcaps.kernels import dynamic_unsupported_reason, fused_dynamic_coupling, fused_dynamic_routing

from kernels.layer_reference import capture
from kernels.poison import poison_fresh_memory
from kernels.routing_reference import CASES, Case, assert_as_accurate_as_the_textbook, textbook_routing

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("exact_products")]

MNIST = Case(batch=128, in_caps=1152, in_pose=8, matrices=1152, out_caps=10, pose=16)
LARGE = {
    "class capsules of MNIST": MNIST,
    "last, leaky": replace(MNIST, batch=33, gradient="last", leaky=True),
    "shared over positions": replace(MNIST, matrices=32),
    "one shared matrix": replace(MNIST, matrices=1, batch=16),
    "chunks of the batch": replace(MNIST, batch=277, in_caps=200, matrices=200),
    "chunks of the batch, last, shared": replace(MNIST, batch=1041, in_caps=64, matrices=16, gradient="last"),
    "1000 classes": replace(MNIST, batch=9, in_caps=100, matrices=100, out_caps=1000),
    "10000 children": replace(MNIST, batch=5, in_caps=10000, matrices=10000),
    "10000 children, shared": replace(MNIST, batch=5, in_caps=10000, matrices=16),
    "long poses": replace(MNIST, batch=17, in_caps=50, matrices=50, in_pose=64, pose=64),
    "unequal poses": replace(MNIST, batch=17, in_caps=51, matrices=51, in_pose=3, pose=33, out_caps=43),
    "ten iterations": replace(MNIST, batch=17, in_caps=40, matrices=40, iterations=10),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_as_accurate_as_the_textbook_loop(case):
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, "cuda")


@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_real_sizes_are_as_accurate_as_the_textbook_loop(case):
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, "cuda", seeds=1)


@pytest.mark.parametrize("case", [Case(), replace(MNIST, batch=33), replace(MNIST, batch=33, matrices=32)])
def test_every_element_is_written(case, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, "cuda", seeds=1)


@pytest.mark.parametrize("case", [Case(), Case(leaky=True), replace(MNIST, matrices=32, bias=False)])
def test_couplings_are_those_of_the_last_iteration(case):
    inputs = case.inputs(torch.float32, "cuda")
    coupling = fused_dynamic_coupling(*inputs, iterations=case.iterations, leaky=case.leaky)
    torch.testing.assert_close(
        coupling, textbook_routing(*inputs, **case.routing)[1].detach(), atol=1e-5, rtol=1e-4
    )


def test_two_calls_give_the_same_bits():
    inputs = MNIST.inputs(torch.float32, "cuda")
    outputs = [fused_dynamic_routing(*inputs, **MNIST.routing) for _ in range(2)]
    gradients = [torch.autograd.grad(out, inputs, torch.ones_like(out)) for out in outputs]
    assert torch.equal(*outputs)
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_nan_shows():
    inputs = [x.detach() for x in replace(MNIST, batch=3).inputs(torch.float32, "cuda")]
    inputs[0][1, 2, 0] = torch.zeros((), device="cuda").log().mul(0)
    routed = fused_dynamic_routing(*inputs)
    assert routed[1].isnan().all()
    assert routed[[0, 2]].isfinite().all()


def test_coarse_products_cost_accuracy_only_when_asked_for():
    inputs = MNIST.inputs(torch.float32, "cuda")
    exact = fused_dynamic_routing(*inputs)
    torch.set_float32_matmul_precision("high")
    coarse = fused_dynamic_routing(*inputs)
    error = (coarse - exact).norm() / exact.norm()
    assert 0 < error < 3e-3


def test_a_captured_graph_replays_the_layer():
    inputs = MNIST.inputs(torch.float32, "cuda")
    incoming = MNIST.incoming(torch.float32, "cuda")

    def step():
        return torch.autograd.grad(fused_dynamic_routing(*inputs), inputs, incoming)

    graph, captured = capture(step)
    with torch.no_grad():
        inputs[0].copy_(torch.randn(inputs[0].shape))
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(captured, step(), strict=True))


@pytest.mark.compile
def test_it_compiles_into_one_graph():
    inputs = MNIST.inputs(torch.float32, "cuda")
    compiled = torch.compile(lambda *x: fused_dynamic_routing(*x).square().sum(), fullgraph=True)
    gradients = [
        torch.autograd.grad(value, inputs)
        for value in (compiled(*inputs), fused_dynamic_routing(*inputs).square().sum())
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    ("case", "most"),
    [
        (MNIST, 40 << 20),
        (replace(MNIST, batch=1024), 150 << 20),
        (replace(MNIST, out_caps=1000), 2 << 30),
    ],
    ids=["batch 128", "batch 1024", "1000 classes"],
)
def test_memory_stays_far_below_the_votes(case, most):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    inputs = case.inputs(torch.float32, "cuda")
    if case.out_caps < 1000:  # otherwise the weight counts too
        before = torch.cuda.memory_allocated()
    torch.autograd.grad(fused_dynamic_routing(*inputs).sum(), inputs)
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before <= most


def test_what_the_kernel_cannot_take_is_said():
    poses, weight = Case(bias=False).inputs(torch.float64, "cuda")
    assert "float64" in dynamic_unsupported_reason(poses, weight)
    assert "at most 64" in dynamic_unsupported_reason(
        poses.float(), torch.empty(1, 5, 2, 65, device="cuda", dtype=torch.float32)
    )


def test_autocast_changes_nothing():
    inputs = MNIST.inputs(torch.float32, "cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        cast = fused_dynamic_routing(*inputs)
    assert torch.equal(cast, fused_dynamic_routing(*inputs))
