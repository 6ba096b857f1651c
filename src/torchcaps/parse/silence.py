"""Whether the capsules that are said to carry a mark do: it is looked at again without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from torchcaps.core import Routed, UserError, generator
from torchcaps.models import ShrinksAndGrows

_SHARE = 0.1  # of the capsules that can reach the mark
_DRAWS = 16


class Silenced(NamedTuple):
    """The mean activation of marked pixels, as it is and without some capsules of the deepest level."""

    before: float
    without_strongest: float
    without_random: float  # mean over 16 draws of as many capsules that can reach the mark
    capsules: int  # left out each time
    reachable: int  # capsules that can reach the mark

    @property
    def fall(self) -> float:
        """What the strongest capsules take with them."""
        return self.before - self.without_strongest

    @property
    def random_fall(self) -> float:
        """What as many random ones take with them."""
        return self.before - self.without_random


@torch.no_grad()
def silence_carriers(
    network: nn.Module,
    inputs: Float[Tensor, "1 channels height width"],
    marked: Bool[Tensor, "1 height width"],
    parts: Float[Tensor, "1 rows columns types"],
) -> Silenced:
    """Leave out the tenth of the reachable capsules with the largest parts, and as many random ones.

    A capsule is left out when its pose and activation become zero. Random ones are drawn from those with any
    part at all: others cannot change the mark, and would be beaten by any map.
    """
    values = parts[0].flatten()
    reachable = values.nonzero().squeeze(1)
    if not len(reachable):
        raise UserError("no capsule of the deepest level reaches the mark")
    count = max(1, round(_SHARE * len(reachable)))
    random = generator(0, "silence")
    groups = [reachable[values[reachable].topk(count).indices]]
    for _ in range(_DRAWS):
        order = torch.randperm(len(reachable), generator=random)[:count]
        groups.append(reachable[order.to(reachable.device)])
    kept = torch.ones(2 + _DRAWS, len(values), device=values.device)  # the first keeps everything
    for number, group in enumerate(groups, start=1):
        kept[number, group] = 0
    answers = [_activation(network, inputs, marked, some.view(parts.shape)) for some in kept]
    return Silenced(answers[0], answers[1], sum(answers[2:]) / _DRAWS, count, len(reachable))


def _activation(network: nn.Module, inputs: Tensor, marked: Tensor, kept: Tensor) -> float:
    assert isinstance(network, ShrinksAndGrows)
    with _only(network.routed_levels().down[-1], kept):
        activations = network(inputs).activations.amax(1)
    return float(activations[marked].mean())


@contextmanager
def _only(layer: nn.Module, kept: Tensor) -> Iterator[None]:
    """While open, capsules of a layer that are not kept are zero."""

    def drop(module: nn.Module, arguments: object, routed: Routed) -> Routed:
        del module, arguments
        return routed._replace(poses=routed.poses * kept.unsqueeze(-1), activations=routed.activations * kept)

    handle = layer.register_forward_hook(drop)
    try:
        yield
    finally:
        handle.remove()
