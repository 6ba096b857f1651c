"""LOBSTER's pull on a GPU, against the plain operations there."""

import pytest
import torch

from torchcaps.prune import Lobster, Pull

from kernels.pull_reference import (
    SHAPES,
    a_step,
    assert_same_bits,
    counted_launches,
    draw,
    strange,
    with_gradient,
)

pytestmark = pytest.mark.gpu

LARGE = {"DR-CapsNet": [(256, 1, 9, 9), (256, 256, 9, 9), (1152, 8, 10, 16)]}


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("shapes", (SHAPES | LARGE).values(), ids=SHAPES | LARGE)
def test_a_step_is_that_of_plain_operations_to_the_bit(shapes, memory_format):
    fused, plain = (
        a_step(draw(shapes, "cuda", memory_format), is_plain=is_plain) for is_plain in (False, True)
    )
    assert_same_bits(fused, plain)


def test_infinite_numbers_zeros_and_what_is_no_number_are_as_in_plain_operations():
    assert_same_bits(a_step(strange("cuda"), is_plain=False), a_step(strange("cuda"), is_plain=True))


def test_weights_on_a_gpu_take_the_kernels_and_those_in_float64_do_not(monkeypatch):
    calls = counted_launches(monkeypatch)
    weights = draw(SHAPES["a network"], "cuda")
    a_step([with_gradient(weight.data.double(), weight.grad.double()) for weight in weights], is_plain=False)
    assert not calls
    a_step(weights, is_plain=False)
    assert calls == ["shrink", "keep_zeros"]


def test_gradients_of_a_channels_last_convolution_lie_as_its_weights_do(monkeypatch):
    calls = counted_launches(monkeypatch)
    layers = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.Conv2d(8, 4, 3)).cuda()
    layers.to(memory_format=torch.channels_last)
    layers(torch.randn(2, 1, 9, 9, device="cuda")).sum().backward()
    Pull([layer.weight for layer in layers], Lobster()).shrink()
    assert calls == ["shrink"]


def test_a_captured_pull_sees_strength_and_masks_change(monkeypatch):
    calls = counted_launches(monkeypatch)
    weights = draw(SHAPES["a network"], "cuda")
    pull = Pull(weights, Lobster(strength=0.5, decay=0.5))
    step_on_side_stream(pull)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(pull)
    assert calls == ["shrink", "keep_zeros"] * 2
    for epoch in (0, 3):
        others = draw(SHAPES["a network"], "cuda")
        for weight, other in zip(weights, others, strict=True):
            other.data[epoch] = 0.0
            weight.data.copy_(other.data)
        pull.start_epoch(epoch)
        graph.replay()
        fresh = Pull(others, pull.settings)
        fresh.start_epoch(epoch)
        step(fresh)
        assert_same_bits([x.detach() for x in weights], [x.detach() for x in others])


def step(pull):
    """A pull, an optimizer that moves zeros too, and what undoes that."""
    pull.shrink()
    for weight in pull._weights:
        weight.data.sub_(0.1)
    pull.keep_zeros()


def step_on_side_stream(pull):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(pull)
    torch.cuda.current_stream().wait_stream(side)
