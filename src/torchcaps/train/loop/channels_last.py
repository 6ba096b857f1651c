"""The memory layout of convolutions."""

from __future__ import annotations

import torch
from torch import nn


def use_channels_last(network: nn.Module) -> None:
    """Give convolutions the memory layout that is fastest on CPUs and GPUs; capsule matrices keep theirs."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def is_better_with_channels_last(network: nn.Module, device: torch.device) -> bool:
    """Whether channels last makes convolutions faster and no result less accurate.

    On a CPU a batch norm of PyTorch rounds much more with channels last; ours does not.
    """
    loses_accuracy = any(type(module) is nn.BatchNorm2d for module in network.modules())
    return device.type == "cuda" or (device.type == "cpu" and not loses_accuracy)
