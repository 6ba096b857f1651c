import torch
from torch import nn

from torchcaps.layers import BatchNorm2d
from torchcaps.train.loop.channels_last import is_better_with_channels_last


def test_a_batch_norm_of_pytorch_keeps_a_network_from_channels_last_on_a_cpu():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    assert not is_better_with_channels_last(network, torch.device("cpu"))
    assert is_better_with_channels_last(network, torch.device("cuda"))
    assert is_better_with_channels_last(nn.Sequential(network[0], BatchNorm2d(2)), torch.device("cpu"))
