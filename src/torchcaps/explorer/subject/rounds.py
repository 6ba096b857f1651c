"""What a network would say if its routing stopped after one round, two rounds, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from torchcaps.core import CapsuleOutput, LayerTrace
from torchcaps.parse import GridShape, ParseTree, distance_from_even, fully_connected, parse_tree
from torchcaps.routing import iterations_of, set_iterations

_MOST = 6  # trees that a page holds of one image


@dataclass(frozen=True)
class Round:
    """The tree of the class that the whole network chose, as it is after so many rounds.

    Attributes:
        number: Rounds of routing, in every layer that has as many.
        tree: With couplings as they are, not rounded.
        distance: Of the couplings from an even split, averaged over the routed layers: 0 is even, 1 decided.
    """

    number: int
    tree: ParseTree
    distance: float


def spread_rounds(last: int) -> list[int]:
    """All rounds up to the last; where there are many, the first, the last and some between."""
    if last <= _MOST:
        return list(range(1, last + 1))
    return sorted({1 + round((last - 1) * step / (_MOST - 1)) for step in range(_MOST)})


def last_round(network: nn.Module, chosen: int, grid: GridShape | None, output: CapsuleOutput) -> Round:
    """The network as it is, whose output for one image is given."""
    return _round(count_rounds(network), output, chosen, grid)


def earlier_rounds(network: nn.Module, inputs: Tensor, chosen: int, grid: GridShape | None) -> list[Round]:
    """What the network would say of one image before its last round; it answers anew for each."""
    found = []
    for number in spread_rounds(count_rounds(network))[:-1]:
        with _at_most(network, number):
            found.append(_round(number, network(inputs, return_routing=True), chosen, grid))
    return found


def count_rounds(network: nn.Module) -> int:
    """The number of rounds of the layer that has most."""
    return max(iterations_of(network).values(), default=1)


def _round(number: int, output: CapsuleOutput, chosen: int, grid: GridShape | None) -> Round:
    layers = fully_connected(output.layers)
    tree = parse_tree(layers, grid=grid, chosen=chosen)
    return Round(number, tree, _mean_distance(layers))


def _mean_distance(layers: tuple[LayerTrace, ...]) -> float:
    couplings = [trace.routed.coupling for trace in layers]
    return sum(distance_from_even(each) for each in couplings if each is not None) / len(couplings)


@contextmanager
def _at_most(network: nn.Module, number: int) -> Iterator[None]:
    """While open, each routing of the network stops after so many rounds."""
    own = iterations_of(network)
    set_iterations(network, {name: min(count, number) for name, count in own.items()})
    try:
        yield
    finally:
        set_iterations(network, own)
