"""Adaptive batch norm: a pruned network is judged by statistics of its own (EagleEye, Li 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def fresh_statistics(model: nn.Module) -> Iterator[None]:
    """Batch norms forget their statistics; inside, each batch counts alike towards new ones.

    Everything else is in evaluation mode inside, so that no dropout adds to the statistics. Weights stay as
    they are; call it without gradients.
    """
    modes = [(module, module.training) for module in model.modules()]
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.training = True
    batches = count(1)

    def weigh(module: nn.Module, inputs: Any) -> None:
        # the mean over batches; PyTorch's own (momentum None) reads a counter back from the device each time
        share = 1 / next(batches)
        for norm in norms:
            norm.momentum = share

    handle = model.register_forward_pre_hook(weigh)
    try:
        yield
    finally:
        handle.remove()
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes:
            module.training = mode
