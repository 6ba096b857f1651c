import pytest
import torch

from torchcaps.models import create_model
from torchcaps.prune import count_sparsity


@torch.no_grad()
def test_zeros_are_counted_over_the_pruned_layers_and_over_everything():
    network = create_model("dr_capsnet_tiny_test")
    network.classes.weight.zero_()
    network.decoder.layers[0].weight[0].zero_()
    cut = network.classes.weight.numel()
    listed = (
        sum(layer.weight.numel() + len(layer.bias) for layer in (network.stem, network.primary.conv)) + cut
    )
    size = sum(parameter.numel() for parameter in network.parameters())
    zeros = cut + network.decoder.layers[0].weight.shape[1]
    counts = count_sparsity(network)
    assert counts["sparsity"] == pytest.approx(cut / listed)
    assert counts["sparsity_total"] == pytest.approx(zeros / size)
    assert counts["parameters_left"] == size - zeros
    assert count_sparsity(network, "stem")["sparsity"] == 0
    assert count_sparsity(network, "nothing")["sparsity"] == 0
