"""Fused dynamic routing in Triton's interpreter, on the CPU; `test_triton.py` runs this file on its own."""

from dataclasses import replace

import pytest
import torch

from torchcaps.kernels import fused_dynamic_coupling, fused_dynamic_routing
from torchcaps.kernels.dynamic import launch
from torchcaps.kernels.dynamic.launch import Tile

from kernels.routing_reference import Case, assert_as_accurate_as_the_textbook, textbook_routing

pytestmark = pytest.mark.usefixtures("interpreted")

SMALL = Case(in_caps=5, matrices=5, in_pose=3, out_caps=3)
SPLIT = {"pool": Tile(2, fill=1), "pose_grad": Tile(2, fill=1)}  # several blocks of children for each program
USUAL = {"several blocks", "last", "leaky, no bias", "two tiles of samples", "shared over positions"}
CASES = {
    "odd": (SMALL, {}),
    "several blocks": (SMALL, SPLIT),
    "several blocks and slots": (SMALL, {"pool": Tile(2, fill=2), "pose_grad": Tile(2, fill=3)}),
    "last": (replace(SMALL, gradient="last"), SPLIT),
    "leaky, no bias": (replace(SMALL, leaky=True, bias=False), SPLIT),
    "one iteration": (replace(SMALL, iterations=1, leaky=True), {}),
    "four iterations": (replace(SMALL, iterations=4), {}),
    "two tiles of samples": (replace(SMALL, batch=18), {"weight_grad": Tile(4)}),
    "shared over positions": (replace(SMALL, in_caps=6, matrices=2), {"weight_grad": Tile(4, fill=12)}),
    "one shared matrix": (replace(SMALL, in_caps=6, matrices=1), {"weight_grad": Tile(4, fill=12)}),
    "one class": (replace(SMALL, out_caps=1), {}),
    "many classes": (replace(SMALL, batch=2, in_caps=2, matrices=2, out_caps=70, iterations=2), {}),
    "one sample, scalars": (replace(SMALL, batch=1, in_pose=1, pose=1), {}),
}


@pytest.fixture
def choose(monkeypatch):
    """A function that replaces some of the tiles that are chosen by shape."""
    by_shape = launch.choose_tiles
    return lambda **tiles: monkeypatch.setattr(
        launch, "choose_tiles", lambda *sizes: replace(by_shape(*sizes), **tiles)
    )


def _others_are_slow(cases):
    return [
        pytest.param(*case, id=name, marks=() if name in USUAL else pytest.mark.slow)
        for name, case in cases.items()
    ]


@pytest.mark.parametrize(("case", "tiles"), _others_are_slow(CASES))
def test_it_is_as_accurate_as_the_textbook_loop(case, tiles, choose):
    choose(**tiles)
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, seeds=1)


CHUNKED = replace(SMALL, batch=37)  # 16, 16 and 5 samples
CHUNKED_CASES = {
    "full": (CHUNKED, {}),
    "last": (replace(CHUNKED, gradient="last"), {}),
    "one iteration": (replace(CHUNKED, iterations=1), {}),
    "more splits than the rest has tiles": (
        replace(CHUNKED, in_caps=6, matrices=2),
        {"weight_grad": Tile(4, fill=24)},
    ),
}


@pytest.mark.parametrize(("case", "tiles"), _others_are_slow(CHUNKED_CASES))
def test_chunks_of_the_batch_join_without_a_seam(case, tiles, choose):
    choose(chunk=16, **tiles)
    assert_as_accurate_as_the_textbook(fused_dynamic_routing, case, seeds=1)


@pytest.mark.parametrize(
    ("samples", "in_caps", "out_caps", "chunk"),
    [
        (128, 1152, 10, 128),
        (129, 1152, 10, 144),
        (1024, 1152, 10, 352),
        (300, 1152, 10, 304),
        (128, 1152, 1000, 16),
        (1, 1, 1, 16),
    ],
)
def test_a_chunk_is_a_whole_number_of_tiles_that_fit(samples, in_caps, out_caps, chunk):
    poses, weight = torch.empty(samples, in_caps, 8), torch.empty(1, 8, out_caps, 16)
    layer = launch._Layer(poses, weight, leaky=False)
    assert launch._chunk_size(layer, (2, 2, out_caps)) == chunk


@pytest.mark.parametrize("case", [SMALL, replace(SMALL, leaky=True, in_caps=6, matrices=3)])
def test_couplings_are_those_of_the_last_iteration(case):
    inputs = case.inputs(torch.float32)
    coupling = fused_dynamic_coupling(*inputs, iterations=case.iterations, leaky=case.leaky)
    torch.testing.assert_close(coupling, textbook_routing(*inputs, **case.routing)[1])


def test_two_calls_give_the_same_bits():
    inputs = SMALL.inputs(torch.float32)
    first, second = (fused_dynamic_routing(*inputs, **SMALL.routing) for _ in range(2))
    assert torch.equal(first, second)


def test_a_nan_shows_whatever_its_bits():
    poses, weight, bias = (x.detach() for x in SMALL.inputs(torch.float32))
    poses[1, 2, 0] = torch.tensor(2**31 - 1, dtype=torch.int32).view(torch.float32)  # as CUDA makes them
    routed = fused_dynamic_routing(poses, weight, bias)
    assert routed[1].isnan().all()
    assert routed[[0, 2]].isfinite().all()
