import pytest
import torch
from torch import nn

from torchcaps.core import evaluating, sketching, without_autocast


def modes(model):
    return [module.training for module in model.modules()]


def test_every_part_returns_to_the_mode_it_was_in():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout()))
    model[1].eval()
    before = modes(model)
    with evaluating(model):
        assert not any(modes(model))
    assert modes(model) == before == [True, True, False, False]


def test_modes_return_after_an_error():
    model = nn.Sequential(nn.Dropout())
    with pytest.raises(ZeroDivisionError), evaluating(model):
        1 / 0  # noqa: B018
    assert modes(model) == [True, True]


def test_a_sketch_draws_nothing():
    before = torch.get_rng_state()
    with sketching():
        empty = torch.empty(2, 3)
        weights = [nn.init.normal_(empty), nn.init.kaiming_normal_(empty), torch.randn(2, 3).mul_(0.1)]
    assert all(each.is_meta and each.shape == (2, 3) for each in weights)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.randn(2).is_meta


def test_products_keep_their_dtype_inside():
    product, x = nn.Linear(3, 3), torch.rand(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert product(x).dtype == torch.bfloat16
        with without_autocast(x):
            assert product(x).dtype == torch.float32


def test_tensors_without_data_have_shapes():
    x = torch.empty(2, 3, device="meta")
    with without_autocast(x):
        assert (x @ x.mT).shape == (2, 2)
