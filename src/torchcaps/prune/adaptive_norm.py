"""Adaptive batch norm: a pruned network gets statistics of its own (EagleEye, Li 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchcaps.core import evaluating


@contextmanager
def fresh_statistics(model: nn.Module) -> Iterator[None]:
    """Batch norms forget their statistics; while open, each batch counts alike towards new ones.

    All other parts are in evaluation mode meanwhile, so that no dropout adds to the statistics. Weights stay
    as they are; call it without gradients.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    batches = count(1)

    def weigh(module: nn.Module, inputs: object) -> None:
        # the mean over batches; PyTorch's own (momentum None) reads a counter back from the device each time
        share = 1 / next(batches)
        for norm in norms:
            norm.momentum = share

    handle = model.register_forward_pre_hook(weigh)
    try:
        with evaluating(model):
            for norm in norms:
                norm.reset_running_stats()
                norm.training = True
            yield
    finally:
        handle.remove()
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
