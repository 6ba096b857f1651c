import numpy as np
import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.layers import LocalConvCaps2d, LocalDeconvCaps2d
from torchcaps.routing import dynamic_routing

IN, OUT, D, P = 3, 2, 4, 5


def grid(height=6, width=5, batch=2, dtype=torch.float32):
    poses = torch.randn(batch, height, width, IN, D, dtype=dtype)
    return Capsules(poses, poses.norm(dim=-1))


def slow_conv_votes(poses, weight, stride):
    """Votes of one image by loops; zero padding puts the odd row and column at the end."""
    kernel = weight.shape[-1]
    height, width, types, _ = poses.shape
    kernels = weight.reshape(OUT, P, D, kernel, kernel)
    rows, columns = -(-height // stride), -(-width // stride)
    top = max((rows - 1) * stride + kernel - height, 0) // 2
    left = max((columns - 1) * stride + kernel - width, 0) // 2
    votes = np.zeros((rows, columns, types, OUT, P))
    for r, c, t in np.ndindex(rows, columns, types):
        for m, n in np.ndindex(kernel, kernel):
            y, x = r * stride + m - top, c * stride + n - left
            if 0 <= y < height and 0 <= x < width:
                votes[r, c, t] += kernels[..., m, n] @ poses[y, x, t]
    return votes


def slow_deconv_votes(poses, weight, stride):
    """Each child adds its votes to the square it grows into."""
    kernel = weight.shape[-1]
    height, width, types, _ = poses.shape
    kernels = weight.reshape(D, OUT, P, kernel, kernel)
    crop = (kernel - stride) // 2
    votes = np.zeros((height * stride, width * stride, types, OUT, P))
    for y, x, t in np.ndindex(height, width, types):
        for m, n in np.ndindex(kernel, kernel):
            r, c = y * stride + m - crop, x * stride + n - crop
            if 0 <= r < votes.shape[0] and 0 <= c < votes.shape[1]:
                votes[r, c, t] += np.tensordot(poses[y, x, t], kernels[..., m, n], 1)
    return votes


def slow_routing(votes, bias, iterations):
    """Dynamic routing of the votes at one position."""
    logits = np.zeros(votes.shape[:-1])
    for _ in range(iterations):
        coupling = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        pooled = (coupling[..., None] * votes).sum(0) + bias
        length = np.sqrt((pooled**2).sum(-1, keepdims=True))
        poses = pooled * length / (1 + length**2)
        logits = logits + (votes * poses).sum(-1)
    return poses, coupling


@pytest.mark.parametrize(
    ("layer", "slow_votes"),
    [
        (LocalConvCaps2d(IN, OUT, D, P, kernel_size=3), slow_conv_votes),
        (LocalConvCaps2d(IN, OUT, D, P, kernel_size=5, stride=2), slow_conv_votes),
        (LocalConvCaps2d(IN, OUT, D, P, kernel_size=1), slow_conv_votes),
        (LocalDeconvCaps2d(IN, OUT, D, P), slow_deconv_votes),
        (LocalDeconvCaps2d(IN, OUT, D, P, kernel_size=2), slow_deconv_votes),
    ],
    ids=["conv 3", "conv 5 stride 2", "conv 1", "deconv 4", "deconv 2"],
)
def test_equals_a_slow_reference_at_every_position(layer, slow_votes):
    layer, children = layer.double(), grid(dtype=torch.float64)
    with torch.no_grad():
        layer.routing.bias.normal_()
        routed = layer(children)
    weight, bias = layer.weight.detach().numpy(), layer.routing.bias.detach().numpy()
    for image in range(2):
        votes = slow_votes(children.poses[image].numpy(), weight, layer.stride)
        assert routed.poses.shape == (2, *votes.shape[:2], OUT, P)
        for row, column in np.ndindex(votes.shape[:2]):
            poses, coupling = slow_routing(votes[row, column], bias, 3)
            assert_close(routed.poses[image, row, column].numpy(), poses, rtol=1e-6, atol=1e-8)
            assert_close(routed.coupling[image, row, column].numpy(), coupling, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", [LocalConvCaps2d, LocalDeconvCaps2d])
def test_one_kernel_serves_all_child_types(kind):
    few, many = (kind(types, OUT, D, P, kernel_size=4) for types in (1, 9))
    assert few.weight.numel() == many.weight.numel() == 16 * D * OUT * P
    assert_close(few.routing.bias, torch.full((OUT, P), 0.1))


@pytest.mark.parametrize("kind", [LocalConvCaps2d, LocalDeconvCaps2d])
def test_couplings_split_each_child_type_over_the_parents_of_a_position(kind):
    coupling = kind(IN, OUT, D, P, kernel_size=4)(grid()).coupling
    assert_close(coupling.sum(-1), torch.ones(coupling.shape[:-1]))


def test_a_single_parent_type_makes_routing_idle():
    one, three = (
        LocalConvCaps2d(IN, 1, D, P, kernel_size=3, routing={"name": "dynamic", "iterations": i})
        for i in (1, 3)
    )
    three.load_state_dict(one.state_dict())
    children = grid()
    assert_close(one(children).poses, three(children).poses)


@pytest.mark.parametrize("kind", [LocalConvCaps2d, LocalDeconvCaps2d])
def test_checkpointing_changes_no_gradient(kind):
    plain = kind(IN, OUT, D, P, kernel_size=4)
    thrifty = kind(IN, OUT, D, P, kernel_size=4, checkpoint=True)
    thrifty.load_state_dict(plain.state_dict())
    gradients = []
    for layer in (plain, thrifty):
        torch.manual_seed(1)
        children = grid()
        children.poses.requires_grad_()
        layer(children).activations.square().sum().backward()
        gradients.append((children.poses.grad, layer.weight.grad, layer.routing.bias.grad))
    for ours, theirs in zip(*gradients, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("kind", [LocalConvCaps2d, LocalDeconvCaps2d])
def test_activations_are_averaged_as_votes_are_pooled(kind):
    seen = []

    def spy(votes, activations):
        seen.append(activations)
        return dynamic_routing(votes, activations)

    layer = kind(IN, OUT, D, P, kernel_size=4, routing=spy)
    children = Capsules(torch.randn(1, 8, 8, IN, D), torch.full((1, 8, 8, IN), 0.7))
    layer(children)
    inner = seen[0][:, 2:-2, 2:-2]
    assert_close(inner, torch.full_like(inner, 0.7))


@pytest.mark.parametrize("routing", ["em", "scaled_distance", "self_attention"])
def test_other_routings_fit(routing):
    layer = LocalConvCaps2d(IN, OUT, D, P, kernel_size=3, routing=routing)
    assert layer(grid()).poses.isfinite().all()


def test_routing_stays_in_float32_under_autocast():
    for layer in (LocalConvCaps2d(IN, OUT, D, P, kernel_size=3), LocalDeconvCaps2d(IN, OUT, D, P)):
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(grid()).poses.dtype == torch.float32


def test_wrong_sizes_are_explained():
    with pytest.raises(UserError, match="LocalConvCaps2d expects 2 types of 4 dimensions, got 3 of 4"):
        LocalConvCaps2d(2, OUT, D, P, kernel_size=3)(grid())
    with pytest.raises(UserError, match=r"only with kernel 2, 4, 6, \.\.\., got 3"):
        LocalDeconvCaps2d(IN, OUT, D, P, kernel_size=3)


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4])
def test_a_map_keeps_its_size_under_a_kernel_that_is_even_too(kernel_size):
    layer = LocalConvCaps2d(2, 3, 4, 5, kernel_size=kernel_size)
    poses = torch.randn(1, 5, 6, 2, 4)
    assert layer(Capsules(poses, poses.norm(dim=-1))).poses.shape == (1, 5, 6, 3, 5)
