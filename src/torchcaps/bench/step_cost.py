"""What one training step of a network on a GPU takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from .memory import MIB, PeakMemory
from .timing import Effort, Work, time_work

LossOfBatch: TypeAlias = Callable[[], Tensor]


class StepCost(NamedTuple):
    """Milliseconds of a step, its memory in GB with that of the weights, and the step itself."""

    ms: float
    gigabytes: float
    step: Work


def measure_step(
    network: nn.Module, device: torch.device, prepare: Callable[[], LossOfBatch], *, warm_ups: int = 0
) -> StepCost:
    """The cost of a step of Adam.

    The network is moved to the device and its weights change: give one that is not needed afterwards.

    Args:
        network: Moved away from the device first, so that its weights count.
        device: A GPU.
        prepare: Called when the network is on the device: makes a batch, and gives what computes its loss.
        warm_ups: Steps whose memory does not count, because the fastest convolutions are searched for in
            them.
    """
    network.cpu()
    peak = PeakMemory(device)
    network.to(device).train()
    loss = prepare()
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learned, 1e-6, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss())
        optimizer.step()

    for _ in range(warm_ups):
        step()
    if warm_ups:
        torch.cuda.reset_peak_memory_stats(device)
    milliseconds = time_work(step, device, Effort.usual(device, quick=True)).ms
    return StepCost(milliseconds, (peak.mebibytes() or 0.0) * MIB / 1e9, step)
