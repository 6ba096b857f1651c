"""Which weights of a run are evaluated and kept: those that learn, or their moving average."""

from __future__ import annotations

from copy import deepcopy
from itertools import chain
from typing import TypedDict

import torch
from torch import Tensor, nn

from torchcaps.models import Network

_OF_NETWORK = "module."  # before the names of its weights in a checkpoint


class AverageState(TypedDict, total=False):
    """What a checkpoint holds of averaged weights; nothing where there is no average."""

    average: dict[str, Tensor]


class LearntWeights:
    """The weights as the last step left them.

    Attributes:
        judged: The model that is evaluated.
        network: The network behind it, whose weights are kept.
    """

    def __init__(self, judged: nn.Module, network: Network) -> None:
        self.judged, self.network = judged, network

    def follow(self) -> None:
        """Called at the end of each step; a captured step replays what the last call did."""

    def count_step(self) -> None:
        """Called after each step, captured or not."""

    def use(self, state: dict[str, Tensor]) -> None:
        """Called when the network gets other weights."""

    def state(self) -> AverageState:
        """What a checkpoint holds beside the network that learns."""
        return {}

    def restore(self, state: AverageState) -> None:
        """Go on from a checkpoint."""


class AveragedWeights(LearntWeights):
    """The moving average of the weights and buffers of a network that learns.

    PyTorch's `AveragedModel` sorts the tensors on the host in every step, so that a captured step would have
    to wait for it.

    Args:
        learning: The network whose weights move.
        share: Of the average, that stays in each step.
    """

    def __init__(self, learning: Network, share: float) -> None:
        network = deepcopy(learning)
        super().__init__(network, network)
        self._share, self._steps = share, 0
        pairs = list(zip(_tensors(network), _tensors(learning), strict=True))
        self._numbers = [pair for pair in pairs if pair[0].is_floating_point()]
        self._counts = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def follow(self) -> None:
        """Take in the weights after a step; the first ones are the average."""
        averages, values = _sides(self._numbers)
        if self._steps == 0:
            torch._foreach_copy_(averages, values)
        else:
            torch._foreach_lerp_(averages, values, 1 - self._share)
        if self._counts:  # their mean would be rounded, also that of two equal ones
            torch._foreach_copy_(*_sides(self._counts))

    def count_step(self) -> None:
        """Remember that there is something to average with."""
        self._steps += 1

    def use(self, state: dict[str, Tensor]) -> None:
        """Go on with these weights as the average."""
        self.network.load_state_dict(state)

    def state(self) -> AverageState:
        """The average, and the number of steps that it was taken over."""
        weights = {_OF_NETWORK + name: tensor for name, tensor in self.network.state_dict().items()}
        return {"average": {"n_averaged": torch.tensor(self._steps), **weights}}

    def restore(self, state: AverageState) -> None:
        """Go on with the average of a checkpoint."""
        average = dict(state["average"])
        self._steps = int(average.pop("n_averaged"))
        self.network.load_state_dict(
            {name.removeprefix(_OF_NETWORK): tensor for name, tensor in average.items()}
        )


def _tensors(network: nn.Module) -> list[Tensor]:
    return [tensor.detach() for tensor in chain(network.parameters(), network.buffers())]


def _sides(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    return [average for average, _ in pairs], [value for _, value in pairs]
