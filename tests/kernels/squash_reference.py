"""Poses of many lengths, and the plain squash that the kernel answers to."""

from functools import partial

import torch

from torchcaps.core import squash, squash_exponential
from torchcaps.kernels.squashed import fused_squash

FUNCTIONS = [squash, squash_exponential]

SHAPES = {
    "one pose": (1, 4),
    "a grid": (2, 3, 3, 5, 8),
    "odd poses": (64, 7, 5),
    "more than a program takes": (300, 8),
    "long poses": (2, 200),
    "numbers": (9, 1),
}


def plain(poses, function=squash):
    squashed = function(poses)
    return squashed, torch.linalg.vector_norm(squashed, dim=-1)


def draw(shape, device="cpu", seed=0):
    """Poses of lengths from a thousandth to a thousand."""
    source = torch.Generator().manual_seed(seed)
    poses = torch.randn(shape, generator=source)
    lengths = 10 ** (6 * torch.rand(*shape[:-1], 1, generator=source) - 3)
    return (poses / poses.norm(dim=-1, keepdim=True) * lengths).to(device)


def results(function, poses, weights):
    """Squashed poses, lengths, and the gradient of their weighted sum."""
    poses = poses.detach().requires_grad_()
    outputs = function(poses)
    (gradient,) = torch.autograd.grad(outputs, poses, [x.to(poses.device, outputs[0].dtype) for x in weights])
    return [x.detach().double() for x in (*outputs, gradient)]


def assert_as_accurate_as_the_plain_function(shape, function, device="cpu"):
    """Errors against float64 are at most twice those of the plain float32 squash, in each range."""
    poses = draw(shape, device)
    weights = torch.randn(shape), torch.randn(shape[:-1])
    exact = results(partial(plain, function=function), poses.double(), weights)
    close = results(partial(plain, function=function), poses, weights)
    fused = results(partial(fused_squash, function=function), poses, weights)
    lengths = poses.double().norm(dim=-1)
    for lowest in (1e-4, 1e-2, 1.0, 1e2):
        chosen = (lengths >= lowest) & (lengths < 100 * lowest)
        for plain_one, fused_one, true in zip(close, fused, exact, strict=True):
            allowed = 2 * (plain_one - true)[chosen].norm() + 1e-6 * true[chosen].norm()
            assert (fused_one - true)[chosen].norm() <= allowed
