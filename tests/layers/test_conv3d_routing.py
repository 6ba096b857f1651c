import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from torchcaps.core import Capsules
from torchcaps.layers import Conv3dRoutingCaps, MapRouting, map_routing
from torchcaps.routing import RoutingShape, dynamic_routing

from refusal import REFUSED
from routing.operations import count_operations

H, W, IN, OUT, D, P = 3, 4, 3, 2, 4, 5


def grid(batch=2, types=IN, pose=D):
    poses = torch.randn(batch, H, W, types, pose, dtype=torch.float64)
    return Capsules(poses, poses.norm(dim=-1))


def slow_votes(layer, poses, depth, offset):
    """One vote at a time, from the sum over the kernel; `offset` is where the kernel starts on a pose."""
    weight = layer.conv.weight[:, 0].unflatten(0, (OUT, P))
    bias = 0 if layer.conv.bias is None else layer.conv.bias.unflatten(0, (OUT, P))
    channels = poses.flatten(-2)  # (height, width, types * pose)
    votes = torch.zeros(IN, H, W, OUT, P, dtype=torch.float64)
    for i in range(IN):
        for y in range(H):
            for x in range(W):
                votes[i, y, x] += bias
                for k in range(depth):
                    for m in range(3):
                        for n in range(3):
                            row, column, channel = y + m - 1, x + n - 1, i * D + k + offset
                            if 0 <= row < H and 0 <= column < W and 0 <= channel < IN * D:
                                votes[i, y, x] += weight[:, :, k, m, n] * channels[row, column, channel]
    return votes


def slow_map_routing(votes, bias, iterations, jointly):
    """One sample, looping over child types; couplings are one distribution over positions and parents."""
    logits = torch.zeros(IN, H, W, OUT, dtype=torch.float64)
    for step in range(iterations):
        coupling = torch.stack([torch.exp(b) / torch.exp(b).sum() for b in logits])
        pooled = sum(coupling[i][..., None] * votes[i] for i in range(IN)) + bias
        squares = pooled**2
        n2 = squares.sum((0, 1, 3))[None, None, :, None] if jointly else squares.sum(-1, keepdim=True)
        poses = pooled * n2 / ((1 + n2) * torch.sqrt(n2 + 1e-8))
        if step < iterations - 1:
            logits = logits + torch.stack([(votes[i] * poses).sum(-1) for i in range(IN)])
    return poses, coupling


@pytest.mark.parametrize(
    ("depth_kernel", "offset", "conv_bias", "jointly"),
    [(None, 0, False, True), (None, 0, False, False), (3, 0, True, False)],
    ids=["authors", "squash per capsule", "thesis"],
)
def test_the_layer_is_its_slow_transcription(depth_kernel, offset, conv_bias, jointly):
    layer = Conv3dRoutingCaps(
        IN, OUT, D, P, depth_kernel=depth_kernel, conv_bias=conv_bias, squash_jointly=jointly
    ).double()
    capsules = grid()
    routed = layer(capsules)
    for sample in range(2):
        votes = slow_votes(layer, capsules.poses[sample], depth_kernel or D, offset)
        poses, coupling = slow_map_routing(votes, layer.routing.bias, 3, jointly)
        assert_close(routed.poses[sample], poses)
        assert_close(routed.activations[sample], poses.norm(dim=-1))
        assert_close(routed.coupling[sample], coupling.permute(1, 2, 0, 3))


def test_the_routing_takes_and_returns_parents_of_all_positions_in_one_axis():
    routing = MapRouting(OUT, P).double()
    votes, activations = torch.randn(2, IN, H * W * OUT, P, dtype=torch.float64), torch.ones(2, IN).double()
    routed = routing(votes, activations)
    assert [tuple(field.shape) for field in routed] == [(2, 24, P), (2, 24), (2, IN, 24)]
    assert_close(routed.coupling.sum(-1), torch.ones(2, IN, dtype=torch.float64))
    for again, before in zip(routing.read_out(votes, activations, routed.coupling), routed, strict=True):
        assert_close(again, before)


def test_each_child_type_splits_over_the_whole_map():
    coupling = Conv3dRoutingCaps(IN, OUT, D, P).double()(grid()).coupling
    assert_close(coupling.sum((1, 2, 4)), torch.ones(2, IN, dtype=torch.float64))


def test_squashed_per_capsule_it_is_dynamic_routing_of_maps():
    votes = torch.randn(2, IN, H * W, OUT, P, dtype=torch.float64)
    bias = torch.randn(OUT, P, dtype=torch.float64)
    maps = map_routing(votes, squash_jointly=False, bias=bias)
    flat = dynamic_routing(votes.flatten(2, 3), torch.ones(2, IN), bias=bias.repeat(H * W, 1))
    assert_close(maps.poses.flatten(1, 2), flat.poses)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_raised_to_float32_in_the_rounds(dtype):
    routing = MapRouting(OUT, P).to(dtype)
    votes, activations = (4 * torch.randn(2, IN, 40 * OUT, P)).to(dtype), torch.ones(2, IN, dtype=dtype)
    found = routing(votes, activations)
    exact = routing.float()(votes.float(), activations.float())
    for field, expected in zip(found, exact, strict=True):
        assert_close(field, expected.to(dtype), rtol=0, atol=0)
    again = routing.to(dtype).read_out(votes, activations, exact.coupling)
    assert_close(again.poses, found.poses, rtol=0, atol=0)


@pytest.mark.parametrize("gradient", ["full", "last"])
def test_gradients(gradient):
    votes = torch.randn(1, IN, 4, OUT, P, dtype=torch.float64).requires_grad_()
    routed = map_routing(votes, gradient=gradient)
    if gradient == "full":
        assert torch.autograd.gradcheck(lambda v: map_routing(v).poses, votes, fast_mode=True)
        return
    pooled = torch.einsum("bxio,bixod->bxod", routed.coupling.detach(), votes)
    n2 = pooled.square().sum((1, 3), keepdim=True)
    expected = torch.autograd.grad((pooled * n2 / ((1 + n2) * torch.sqrt(n2 + 1e-8))).sum(), votes)
    assert_close(torch.autograd.grad(routed.poses.sum(), votes), expected)


def test_the_kernel_has_the_weights_of_the_paper():
    layer = Conv3dRoutingCaps(32, 32, 8, 8)
    assert [p.numel() for p in layer.parameters()] == [18_432, 256]
    assert_close(layer.routing.bias.detach(), torch.full((32, 8), 0.1))


def test_the_cost_formula_counts_the_products_that_run():
    routing, votes = MapRouting(OUT, P), torch.randn(1, IN, 6 * OUT, P)
    with FlopCounterMode(display=False) as counter:
        routing(votes, torch.ones(1, IN))
    assert 2 * routing.cost(RoutingShape(IN, 6 * OUT, P)).multiply_adds == counter.get_total_flops()


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("squash_jointly", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_cost_formula_counts_the_operations_that_run(rounds, squash_jointly, bias):
    routing = MapRouting(OUT, P, iterations=rounds, squash_jointly=squash_jointly, bias=bias)
    ran = count_operations(routing, torch.randn(1, IN, 6 * OUT, P), torch.ones(1, IN))
    assert routing.cost(RoutingShape(IN, 6 * OUT, P)).flops == ran


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Conv3dRoutingCaps(IN, OUT, D, P, depth_kernel=5),
            "depth_kernel must be between 1 and 4, the pose",
        ),
        (lambda: Conv3dRoutingCaps(IN, OUT, D, P, kernel_size=4), "must be odd"),
        (lambda: Conv3dRoutingCaps(IN, OUT, D, P, gradient="some"), "gradient"),
        (lambda: Conv3dRoutingCaps(IN, OUT, D, P, iterations=0), "iterations"),
        (
            lambda: Conv3dRoutingCaps(5, OUT, D, P).double()(grid()),
            "expects 5 types of 4 dimensions, got 3 of 4",
        ),
    ],
)
def test_mistakes_are_answered(make, message):
    with pytest.raises(REFUSED, match=message):
        make()
