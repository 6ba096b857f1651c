"""The squash of many poses in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.kernels.squashed import function as squashed
from torchcaps.kernels.squashed import fused_squash
from torchcaps.layers import PrimaryCaps

from kernels.squash_reference import FUNCTIONS, SHAPES, assert_as_accurate_as_the_plain_function, draw, plain

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),  # NumPy warns where a GPU does not
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_it_is_as_accurate_as_the_plain_function(shape, function):
    assert_as_accurate_as_the_plain_function(shape, function)


def test_half_precision_poses_are_squashed_in_float32_and_get_a_gradient_of_their_own():
    poses = draw((5, 8)).bfloat16().requires_grad_()
    squashed, lengths = fused_squash(poses)
    assert squashed.dtype == lengths.dtype == torch.float32
    torch.testing.assert_close((squashed, lengths), plain(poses.detach().float()))
    (gradient,) = torch.autograd.grad(squashed.sum() + lengths.sum(), poses)
    assert gradient.dtype == torch.bfloat16


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_zero_short_and_long_poses_stay_finite(scale, function):
    poses = (scale * torch.randn(4, 8)).requires_grad_()
    outputs = fused_squash(poses, function)
    (gradient,) = torch.autograd.grad(outputs, poses, [torch.ones_like(x) for x in outputs])
    assert all(x.isfinite().all() for x in (*outputs, gradient))


def test_no_poses_give_no_lengths():
    squashed, lengths = fused_squash(torch.empty(0, 3, 8))
    assert squashed.shape == (0, 3, 8)
    assert lengths.shape == (0, 3)


def test_poses_may_lie_in_memory_in_any_order():
    poses = draw((3, 4, 8))
    strided = poses.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert all(map(torch.equal, fused_squash(poses), fused_squash(strided)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_its_second_derivative_is_that_of_the_plain_function(function):
    poses = draw((3, 8)).requires_grad_()
    second = []
    for outputs in (fused_squash(poses, function), plain(poses, function)):
        total = sum(output.square().sum() for output in outputs)
        (gradient,) = torch.autograd.grad(total, poses, create_graph=True)
        second += torch.autograd.grad(gradient.square().sum(), poses)
    torch.testing.assert_close(*second)


def test_many_gradients_at_once_are_those_of_each():
    poses = draw((4, 8)).requires_grad_()
    lengths = fused_squash(poses)[1]
    found = torch.autograd.grad(lengths, poses, torch.eye(4), is_grads_batched=True, retain_graph=True)
    single = [torch.autograd.grad(lengths, poses, row, retain_graph=True)[0] for row in torch.eye(4)]
    assert torch.equal(found[0], torch.stack(single))


def test_another_squash_has_no_kernel():
    with pytest.raises(ValueError, match="no fused kernel for tanh"):
        fused_squash(torch.zeros(2, 8), torch.tanh)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_primary_capsules_answer_the_same_with_the_kernel(function):
    torch.manual_seed(0)
    layer = PrimaryCaps(3, 2, 4, kernel_size=3, stride=2, squash=function)
    images = torch.randn(2, 3, 9, 7)
    results = []
    for backend in ("torch", "auto"):
        layer.backend = backend
        capsules = layer(images)
        loss = capsules.poses.square().sum() + capsules.activations.sum()
        results.append([*capsules, *torch.autograd.grad(loss, list(layer.parameters()))])
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_operator_announces_the_shapes_it_returns():
    poses = draw((3, 8))
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(squashed._squash_op, (poses.half(), True), **checks)
    torch.library.opcheck(squashed._squash_backward_op, (poses.half(), poses, torch.rand(3), True), **checks)
