"""Batch normalisation with channels last answers to PyTorch's without."""

import pytest
import torch
from torch import nn

from torchcaps.layers import BatchNorm2d

from accuracy import assert_as_accurate_as

LAST = torch.channels_last


def normalised(norm, maps, slope):
    """Result, gradients, and running statistics of one step."""
    maps = maps.clone().requires_grad_()
    result = norm.train()(maps)
    grads = torch.autograd.grad(result, [maps, *norm.parameters()], slope)
    return [result.detach(), *grads, norm.running_mean, norm.running_var]


@pytest.mark.parametrize("far", [1.0, 30.0])
@pytest.mark.parametrize("shape", [(16, 8, 20, 20), (3, 5, 7, 4), (2, 300, 9, 11)])
def test_it_is_as_accurate_as_without_channels_last(shape, far):
    maps, slope = torch.randn(shape).relu() + far, torch.randn(shape)
    exact = normalised(nn.BatchNorm2d(shape[1]).double(), maps.double(), slope.double())
    plain = normalised(nn.BatchNorm2d(shape[1]), maps, slope)
    mine = normalised(BatchNorm2d(shape[1]), *(each.contiguous(memory_format=LAST) for each in (maps, slope)))
    for each in zip(mine, plain, exact, strict=True):
        assert_as_accurate_as(*each)
    assert mine[0].is_contiguous(memory_format=LAST)


def test_it_follows_the_moments_of_batches_as_pytorch_does():
    mine, theirs = BatchNorm2d(4), nn.BatchNorm2d(4)
    for _ in range(3):
        maps = torch.randn(8, 4, 5, 6)
        mine(maps.contiguous(memory_format=LAST))
        theirs(maps)
    torch.testing.assert_close(mine.state_dict(), theirs.state_dict())
    maps = torch.randn(2, 4, 5, 6)
    torch.testing.assert_close(mine.eval()(maps.contiguous(memory_format=LAST)), theirs.eval()(maps))


def test_a_constant_channel_stays_finite():
    maps = torch.full((4, 3, 6, 6), 7.0).contiguous(memory_format=LAST)
    result, *grads = normalised(BatchNorm2d(3), maps, torch.randn(4, 3, 6, 6))[:4]
    assert all(each.isfinite().all() for each in (result, *grads))
