"""How much of a network is zero."""

from __future__ import annotations

import torch
from torch import nn

from torchcaps.inspection import count_parameters

from .lobster import prunable_layers


@torch.no_grad()
def count_sparsity(network: nn.Module, pattern: str = "*") -> dict[str, float | int]:
    """Zeros among all parameters of the pruned layers and of the network, and how many are left in it."""
    listed = [
        parameter
        for _, layer in prunable_layers(network, pattern)
        for parameter in layer.parameters(recurse=False)
    ]
    everything = list(network.parameters())
    size = count_parameters(network)
    zeros = _count_zeros(everything)
    size_listed = sum(parameter.numel() for parameter in listed)
    return {
        "sparsity": _count_zeros(listed) / max(size_listed, 1),
        "sparsity_total": zeros / max(size, 1),
        "parameters_left": size - zeros,
    }


def _count_zeros(parameters: list[nn.Parameter]) -> int:
    if not parameters:
        return 0
    return int(torch.stack([(parameter == 0).sum() for parameter in parameters]).sum())
