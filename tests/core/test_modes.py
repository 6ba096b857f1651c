import pytest
from torch import nn

from torchcaps.core import evaluating


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
