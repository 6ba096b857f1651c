"""Which weights of a run are evaluated and kept: those that learn, or their moving average."""

from __future__ import annotations

from typing import TypedDict

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from torchcaps.core import Plain
from torchcaps.models import Network

from .optimizer import Optim, make_average


class AverageState(TypedDict, total=False):
    """What a checkpoint holds of averaged weights; nothing where there is no average."""

    average: Plain


class LearntWeights:
    """The weights as the last step left them.

    Attributes:
        judged: The model that is evaluated.
        network: The network behind it, whose weights are kept.
    """

    def __init__(self, judged: nn.Module, network: Network) -> None:
        self.judged, self.network = judged, network

    def follow(self) -> None:
        """Called after each step."""

    def use(self, state: dict[str, Tensor]) -> None:
        """Called when the network gets other weights."""

    def state(self) -> AverageState:
        """What a checkpoint holds beside the network that learns."""
        return {}

    def restore(self, state: AverageState) -> None:
        """Go on from a checkpoint."""


class AveragedWeights(LearntWeights):
    """The moving average of the weights of a network that learns."""

    def __init__(self, average: AveragedModel, learning: nn.Module) -> None:
        network = average.module
        assert isinstance(network, Network)
        super().__init__(network, network)
        self._average, self._learning = average, learning

    def follow(self) -> None:
        """Take in the weights after a step."""
        self._average.update_parameters(self._learning)

    def use(self, state: dict[str, Tensor]) -> None:
        """Go on with these weights as the average."""
        self.network.load_state_dict(state)

    def state(self) -> AverageState:
        """The average, and the number of steps that it was taken over."""
        return {"average": self._average.state_dict()}

    def restore(self, state: AverageState) -> None:
        """Go on with the average of a checkpoint."""
        self._average.load_state_dict(state["average"])


def choose_weights(model: nn.Module, network: Network, settings: Optim) -> LearntWeights:
    """The average where the recipe asks for one, else the weights that learn; `model` wraps `network`."""
    average = make_average(network, settings)
    return LearntWeights(model, network) if average is None else AveragedWeights(average, network)
