import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import pose_lengths, squash, squash_exponential
from torchcaps.core.squash import squash_divisor
from torchcaps.kernels.squash import squash_backward


def vectors(length):
    direction = torch.tensor([3.0, 0, -4.0], dtype=torch.float64) / 5
    return direction * length, direction


@pytest.mark.parametrize("length", [1e-2, 0.5, 1.0, 3.0, 1e3])
def test_lengths_are_those_of_the_papers(length):
    pose, direction = vectors(length)
    assert_close(squash(pose), direction * length**2 / (1 + length**2), atol=1e-6, rtol=1e-4)
    expected = direction * (1 - torch.exp(torch.tensor(-length, dtype=torch.float64)))
    assert_close(squash_exponential(pose), expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("function", [squash, squash_exponential])
def test_gradients_are_those_of_finite_differences(function):
    poses = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(function, [poses])


@pytest.mark.parametrize("function", [squash, squash_exponential])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e15])
def test_extreme_poses_keep_a_finite_gradient_and_a_length_below_one(function, scale):
    poses = (torch.randn(4, 3) * scale).requires_grad_()
    result = function(poses)
    result.sum().backward()
    assert result.isfinite().all()
    assert poses.grad.isfinite().all()
    assert (result.norm(dim=-1) <= 1 + 1e-6).all()


@pytest.mark.parametrize("function", [squash, squash_exponential])
@pytest.mark.parametrize("length", [1e17, 3e19, 1e37])
def test_a_pose_whose_square_overflows_has_length_one_and_its_gradient_turns_it(function, length):
    pose, direction = (vector.float() for vector in vectors(length))
    pose.requires_grad_()
    result = function(pose)
    assert_close(result, direction)
    (grad,) = torch.autograd.grad(result, pose, torch.tensor([1.0, 2.0, 3.0]))
    towards = torch.tensor([1.0, 2.0, 3.0])
    assert_close(grad * length, towards - (towards @ direction) * direction, rtol=1e-5, atol=1e-5)
    if function is squash:
        assert_close(squash_backward(pose.detach(), towards) * length, grad * length)


@pytest.mark.parametrize("function", [squash, squash_exponential])
def test_an_infinite_pose_is_not_taken_for_an_absent_one(function):
    assert function(torch.tensor([float("inf"), 1.0])).isnan().all()


@pytest.mark.parametrize("function", [squash, squash_exponential])
def test_half_precision_is_that_of_float32_rounded_once(function):
    poses = torch.tensor([[300.0, 300.0], [6e4, 0.0], [0.3, -0.4], [0.0, 0.0]], dtype=torch.float16)
    half = poses.clone().requires_grad_()
    result = function(half)
    result.sum().backward()
    assert torch.equal(result, function(poses.float()).half())
    assert half.grad.isfinite().all()


def test_lengths_are_norms_however_poses_lie_in_memory():
    poses = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    poses[0, 1] = 0
    for given in (poses, poses.permute(0, 2, 3, 1)):
        given = given.detach().requires_grad_()
        norms = torch.linalg.vector_norm(given, dim=-1)
        assert_close(pose_lengths(given), norms)
        (grad,) = torch.autograd.grad(pose_lengths(given).sum(), given)
        assert_close(grad, torch.autograd.grad(norms.sum(), given)[0])


def test_the_divisor_is_that_of_the_largest_number_to_the_bit():
    poses = torch.randn(7, 3, 4) * torch.logspace(-30, 37, 7).view(7, 1, 1)
    poses[0, 0, 0], poses[1, 1, 1] = float("-inf"), float("nan")
    for given in (poses, poses.mT):
        largest = torch.linalg.vector_norm(given, ord=float("inf"), dim=-1, keepdim=True)
        assert_close(squash_divisor(given), (largest / 1e8).clamp(min=1), rtol=0, atol=0, equal_nan=True)
