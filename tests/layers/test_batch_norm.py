"""Batch normalisation with channels last answers to PyTorch's without."""

import pytest
import torch
from torch import nn

from torchcaps.core import UserError
from torchcaps.kernels.batch_norm import function
from torchcaps.layers import BatchNorm2d

from accuracy import assert_as_accurate_as

LAST = torch.channels_last


@pytest.fixture(params=["compiled", "plain"])
def passes(request, monkeypatch):
    """The passes that numba compiles, for any number of maps, and those in plain PyTorch operations."""
    if request.param == "plain":
        monkeypatch.setattr(function, "has_numba", lambda: False)
        return
    pytest.importorskip("numba", reason="the compiled passes need numba")
    monkeypatch.setattr(function, "_WORTH_COMPILING", 0)


def last(*tensors):
    return [each.contiguous(memory_format=LAST) for each in tensors]


def steps_of(call, norm, maps, slope, *more):
    """Result, gradients, and running statistics of one step."""
    maps = maps.clone().requires_grad_()
    result = call(norm.train(), maps)
    grads = torch.autograd.grad(result, [maps, *more, *norm.parameters()], slope)
    return [result.detach(), *grads, norm.running_mean, norm.running_var]


def normalised(norm, maps, slope):
    return steps_of(lambda norm, maps: norm(maps), norm, maps, slope)


def rectified_first(norm, maps, slope, added):
    return steps_of(lambda norm, maps: norm((maps + added[:, None, None]).relu()), norm, maps, slope, added)


@pytest.mark.parametrize("far", [1.0, 30.0])
@pytest.mark.parametrize("shape", [(16, 8, 20, 20), (3, 5, 7, 4), (2, 300, 9, 11)])
def test_it_is_as_accurate_as_without_channels_last(shape, far, passes):
    maps, slope = torch.randn(shape).relu() + far, torch.randn(shape)
    exact = normalised(nn.BatchNorm2d(shape[1]).double(), maps.double(), slope.double())
    plain = normalised(nn.BatchNorm2d(shape[1]), maps, slope)
    mine = normalised(BatchNorm2d(shape[1]), *last(maps, slope))
    for each in zip(mine, plain, exact, strict=True):
        assert_as_accurate_as(*each)
    assert mine[0].is_contiguous(memory_format=LAST)


@pytest.mark.parametrize("shape", [(16, 8, 20, 20), (3, 5, 7, 4)])
def test_of_rectified_maps_it_is_as_accurate_as_after_a_rectifier(shape, passes):
    maps, slope, added = torch.randn(shape), torch.randn(shape), torch.randn(shape[1]).requires_grad_()
    wide = added.detach().double().requires_grad_()
    exact = rectified_first(nn.BatchNorm2d(shape[1]).double(), maps.double(), slope.double(), wide)
    plain = rectified_first(nn.BatchNorm2d(shape[1]), maps, slope, added)

    def call(norm, maps):
        return norm.of_rectified(maps, added)

    mine = steps_of(call, BatchNorm2d(shape[1]), *last(maps, slope), added)
    for each in zip(mine, plain, exact, strict=True):
        assert_as_accurate_as(*each)


def test_a_channel_that_began_far_from_its_mean_is_no_less_accurate(passes):
    maps, slope = torch.randn(64, 4, 9, 9), torch.randn(64, 4, 9, 9)
    maps[::2] += 50
    exact = normalised(nn.BatchNorm2d(4).double(), maps.double(), slope.double())
    plain = normalised(nn.BatchNorm2d(4), maps, slope)
    for each in zip(normalised(BatchNorm2d(4), *last(maps, slope)), plain, exact, strict=True):
        assert_as_accurate_as(*each)


def test_a_map_that_is_no_number_spoils_its_channel_alone(passes):
    maps = torch.randn(4, 3, 6, 6)
    maps[1, 2, 3, 4] = torch.nan
    result = BatchNorm2d(3).train().of_rectified(*last(maps))
    assert result[:, 2].isnan().all()
    assert result[:, :2].isfinite().all()


def test_it_follows_the_moments_of_batches_as_pytorch_does(passes):
    mine, theirs = BatchNorm2d(4), nn.BatchNorm2d(4)
    for _ in range(3):
        maps = torch.randn(8, 4, 5, 6)
        mine(maps.contiguous(memory_format=LAST))
        theirs(maps)
    torch.testing.assert_close(mine.state_dict(), theirs.state_dict())
    maps = torch.randn(2, 4, 5, 6)
    torch.testing.assert_close(mine.eval()(maps.contiguous(memory_format=LAST)), theirs.eval()(maps))


def test_a_constant_channel_stays_finite(passes):
    maps = torch.full((4, 3, 6, 6), 7.0).contiguous(memory_format=LAST)
    result, *grads = normalised(BatchNorm2d(3), maps, torch.randn(4, 3, 6, 6))[:4]
    assert all(each.isfinite().all() for each in (result, *grads))


def test_a_second_derivative_is_refused_instead_of_wrong(passes):
    norm, maps = BatchNorm2d(3).train(), torch.randn(4, 3, 6, 6, requires_grad=True)
    loss = norm(maps.contiguous(memory_format=LAST)).pow(3).sum()
    with pytest.raises(UserError, match=r"no second derivative.*contiguous_format"):
        torch.autograd.grad(loss, maps, create_graph=True)
    (grad,) = torch.autograd.grad(norm(maps).pow(3).sum(), maps, create_graph=True)  # by PyTorch
    (second,) = torch.autograd.grad(grad.square().sum(), maps)
    assert second.any()


def test_it_takes_samples_one_by_one_in_evaluation():
    norm, maps = BatchNorm2d(3).eval(), torch.randn(4, 3, 6, 6)
    torch.testing.assert_close(torch.func.vmap(lambda each: norm(each[None])[0])(maps), norm(maps))


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacfwd])
def test_a_norm_that_follows_no_batch_can_be_transformed_while_it_learns(transform):
    """PyTorch cannot transform one that does, and says how to make one that does not."""
    norm = torch.func.replace_all_batch_norm_modules_(BatchNorm2d(3).train())
    plain, maps = nn.BatchNorm2d(3, track_running_stats=False), torch.randn(2, 3, 2, 2)
    found = transform(lambda maps: norm(maps).sin().sum())(maps.contiguous(memory_format=LAST))
    torch.testing.assert_close(found, transform(lambda maps: plain(maps).sin().sum())(maps))
