import torch
from torch import nn
from torch.testing import assert_close

from torchcaps.prune import fresh_statistics


def test_statistics_are_the_means_over_the_batches():
    model = nn.Sequential(nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.Dropout(0.9), nn.BatchNorm2d(5)).double()
    batches = [torch.randn(4, 2, 6, 6, dtype=torch.float64) + number for number in range(3)]
    model(batches[0])  # statistics to be forgotten
    weights = [parameter.clone() for parameter in model.parameters()]
    with torch.no_grad(), fresh_statistics(model.eval()):
        for batch in batches:
            model(batch)
        maps = [model[0](batch) for batch in batches]
    means = torch.stack([each.mean((0, 2, 3)) for each in maps]).mean(0)
    variances = torch.stack([each.var((0, 2, 3)) for each in maps]).mean(0)
    assert_close(model[1].running_mean, means)
    assert_close(model[1].running_var, variances)
    assert_close(model[3].running_mean, torch.zeros(5, dtype=torch.float64), atol=1e-12, rtol=0)
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))


def test_afterwards_everything_is_as_before():
    model = nn.Sequential(nn.BatchNorm2d(3, momentum=0.3), nn.Dropout())
    model[1].eval()
    with torch.no_grad(), fresh_statistics(model):
        assert [module.training for module in model] == [True, False]
        model(torch.randn(2, 3, 4, 4))
    assert [module.training for module in model] == [True, False]
    assert model[0].momentum == 0.3
    assert not model._forward_pre_hooks


@torch.no_grad()
def test_dropout_adds_nothing_to_the_statistics():
    dropout, norm = nn.Dropout(0.5), nn.BatchNorm1d(3)
    network, batch = nn.Sequential(dropout, norm), torch.randn(20, 3)
    with fresh_statistics(network):
        network(batch)
    assert_close(norm.running_mean, batch.mean(0))
    assert_close(norm.running_var, batch.var(0))
    assert dropout.training
