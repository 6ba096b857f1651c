"""The technique that a recipe asks for."""

from __future__ import annotations

from torch import nn

from torchcaps.core import Metric
from torchcaps.prune import Lobster

from .annealed import AnnealedTraining
from .annealing import Annealing
from .api import Technique
from .pruned import PrunedTraining


def choose_technique(
    annealing: Annealing | None, pruning: Lobster | None, network: nn.Module, leading: Metric
) -> Technique:
    """Annealed or pruned training of a network, or plain training where a recipe asks for neither."""
    if annealing is not None:
        return AnnealedTraining(annealing, network)
    return Technique() if pruning is None else PrunedTraining(pruning, network, leading)
