"""Scaled-distance routing in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.core import Capsules
from torchcaps.kernels.scaled_distance import launch, operators
from torchcaps.kernels.scaled_distance.launch import Tile, Tiles
from torchcaps.layers import ConvCaps2d

from kernels import distance_reference
from kernels.distance_reference import DistanceCase
from kernels.layer_reference import assert_answers_alike, assert_as_accurate_as_the_plain_layer

# of a sum without a term, NumPy warns where a GPU does not
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),
]


@pytest.mark.parametrize("case", distance_reference.QUICK.values(), ids=distance_reference.QUICK)
def test_it_is_as_accurate_as_the_plain_layer(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", distance_reference.CASES.values(), ids=distance_reference.CASES)
def test_it_is_as_accurate_as_the_plain_layer_in_many_shapes(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=3)


def test_children_samples_and_poses_split_among_programs_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(launch, "_REGISTERS", 32 * 128)
    tiles = Tiles(
        distance=Tile(1, 1, 21), pool=Tile(1, 1, 32), target_grad=Tile(1, 1, 21), votes_grad=Tile(2, 1, 6)
    )
    monkeypatch.setattr(launch, "choose_tiles", lambda *sizes: tiles)
    assert_as_accurate_as_the_plain_layer(DistanceCase(batch=2, in_caps=5, iterations=2), seeds=1)


def test_couplings_are_those_of_the_last_iteration():
    case = DistanceCase(in_caps=4)
    layer, children = case.layer(), Capsules(*case.children())
    results = []
    for layer.backend in ("torch", "fused"):
        with torch.no_grad():
            results.append(layer(children))
    torch.testing.assert_close(*results)


def test_a_convolutional_layer_answers_the_same_with_the_kernel():
    torch.manual_seed(0)
    layer = ConvCaps2d(2, 3, 2, 4, kernel_size=2, init_std=0.5, routing="scaled_distance")
    children = Capsules(torch.randn(1, 3, 2, 2, 2), torch.rand(1, 3, 2, 2))
    assert_answers_alike(layer, children, rtol=1e-4, atol=1e-5)
    assert layer(children, return_coupling=False).coupling is None


def test_a_nan_shows_in_its_sample_alone():
    case = DistanceCase(in_caps=3)
    layer, (poses, activations) = case.layer(), case.children()
    layer.backend = "fused"
    poses[1, 2, 0] = torch.nan
    with torch.no_grad():
        routed = layer(Capsules(poses, activations)).poses
    assert routed[1].isnan().all()
    assert routed[[0, 2]].isfinite().all()


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_zero_and_long_votes_stay_finite(scale):
    case = DistanceCase(batch=1, in_caps=2, iterations=2)
    layer = case.layer()
    layer.backend = "fused"
    inputs = [(scale * x).requires_grad_() for x in case.children()]
    routed = layer(Capsules(*inputs), return_coupling=False)
    gradients = torch.autograd.grad(routed.poses.sum(), [*inputs, *layer.parameters()])
    assert all(x.isfinite().all() for x in (*routed[:2], *gradients))


@pytest.mark.slow
def test_the_operator_announces_the_shapes_it_returns():
    case = DistanceCase(batch=1, in_caps=2, iterations=2)
    layer = case.layer()
    inputs = (*case.children(), layer.weight.detach(), layer.routing.bias.detach(), 1.5, 2, False, True)
    for keep in (False, True):
        torch.library.opcheck(
            operators._routing_op, (*inputs, keep), test_utils=("test_schema", "test_faketensor")
        )
