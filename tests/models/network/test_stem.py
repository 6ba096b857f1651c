"""The convolutions that several families stand on."""

import pytest
import torch
from torch import nn

from torchcaps.layers import ConvStage
from torchcaps.models.network import conv_stem

LAST = torch.channels_last


def stem(layout=LAST):
    torch.manual_seed(0)
    built = conv_stem(1, (4, 6), [ConvStage("stem.0", 3), ConvStage("stem.1", 3, 2)])
    for block in built:
        nn.init.normal_(block[0].bias)
    return built.to(memory_format=layout)


def outputs_and_gradients(network, images):
    result = network(images)
    return [result, *torch.autograd.grad(result.square().sum(), network.parameters())]


@pytest.mark.parametrize("layout", [LAST, torch.contiguous_format])
def test_a_block_that_learns_gives_what_its_parts_give_one_after_the_other(layout):
    images, network, alike = torch.randn(5, 1, 12, 12), stem(layout).train(), stem(layout).train()
    parts = nn.Sequential(*(nn.Sequential(*block) for block in alike))
    torch.testing.assert_close(
        outputs_and_gradients(network, images), outputs_and_gradients(parts, images), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(network.state_dict(), parts.state_dict())


def test_a_block_with_instance_norm_by_hand():
    """As Keras has it: a slope of 0.3 below zero, and 0.001 beside the variance of each map."""
    (block,) = conv_stem(1, (4,), [ConvStage("stem.0", 3)], "instance").double()
    images = torch.randn(2, 1, 8, 8, dtype=torch.float64)
    maps = nn.functional.conv2d(images, block[0].weight)  # the bias begins at zero
    maps = torch.where(maps < 0, 0.3 * maps, maps)
    centred = maps - maps.mean((2, 3), keepdim=True)
    expected = centred / (centred.square().mean((2, 3), keepdim=True) + 1e-3).sqrt()
    torch.testing.assert_close(block(images), expected)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_hook_on_a_part_of_a_block_sees_its_output(place):
    network, seen = stem().train(), []
    network[0][place].register_forward_hook(lambda module, inputs, output: seen.append(output))
    result = network(torch.randn(5, 1, 12, 12))
    assert len(seen) == 1
    assert seen[0].shape == (5, 4, 10, 10)
    assert result.requires_grad
