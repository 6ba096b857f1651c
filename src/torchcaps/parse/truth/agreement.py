"""Carved trees against the true one: how many of their edges are right, and how many true ones they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor

from torchcaps.core import LayerTrace, generator

from ..tree import Edge, parse_tree

_NOTHING = -1  # clutter, background, or a mixture that is mostly those


@runtime_checkable
class TrueTree(Protocol):
    """Nodes by number, parts first and the whole last."""

    @property
    def parents(self) -> tuple[int, ...]:
        """The number of each node's parent, -1 for the whole."""
        ...

    @property
    def num_parts(self) -> int:
        """Nodes without children."""
        ...

    def ancestors(self, node: int) -> list[int]:
        """The nodes above one, nearest first."""
        ...


class Agreement(NamedTuple):
    """Precision is the share of carved edges that are right, recall the share of true edges that were carved.

    Each capsule of a carved tree stands for a true node: those of the first layer for the part they look at,
    others for the lowest node that covers more than half of what they are made of, the class for the whole.
    An edge is right if its child stands for a part or something made of parts, and its parent for the same or
    for what contains it. A true edge is carved if some edge leads from its child to its parent.
    """

    precision: float
    recall: float


class Trees(NamedTuple):
    """The agreement of a carved tree, of a tree with even couplings, and of one with random ones."""

    carved: Agreement
    even: Agreement
    random: Agreement


def measure_agreement(edges: Sequence[Edge], looks_at: Sequence[int], truth: TrueTree) -> Agreement:
    """Compare the edges of one carved tree with the true tree.

    Args:
        edges: Of all layers; a parent of the highest layer is the class.
        looks_at: For each capsule of the first layer the number of a true part, or -1.
        truth: The true tree.
    """
    if not edges:
        return Agreement(float("nan"), 0.0)
    judged = judge_edges(edges, looks_at, truth)
    found = {
        (judged.node_of(edge.layer, edge.child), judged.node_of(edge.layer + 1, edge.parent))
        for edge in judged.right
    }
    true_edges = {(node, parent) for node, parent in enumerate(truth.parents) if parent >= 0}
    return Agreement(len(judged.right) / len(edges), len(found & true_edges) / len(true_edges))


class Judged(NamedTuple):
    """What the capsules of a carved tree stand for, and those of its edges that are right."""

    stands_for: dict[tuple[int, int], int]  # by layer and capsule
    right: list[Edge]

    def node_of(self, layer: int, capsule: int) -> int:
        """The true node that a capsule stands for; -1 also where all its edges from below were cut off."""
        return self.stands_for.get((layer, capsule), _NOTHING)


def judge_edges(edges: Sequence[Edge], looks_at: Sequence[int], truth: TrueTree) -> Judged:
    """Which edges of a carved tree are right, as `Agreement` has it; see `measure_agreement`."""
    highest = max(edge.layer for edge in edges)
    judged = Judged({(0, child): node for child, node in enumerate(looks_at)}, [])
    for layer in range(highest + 1):
        own = [edge for edge in edges if edge.layer == layer]
        _assign_parents(own, judged.stands_for, truth, is_last=layer == highest)
        for edge in own:
            child, parent = judged.node_of(layer, edge.child), judged.node_of(layer + 1, edge.parent)
            if child != _NOTHING and (parent == child or parent in truth.ancestors(child)):
                judged.right.append(edge)
    return judged


def _assign_parents(
    edges: Sequence[Edge], stands_for: dict[tuple[int, int], int], truth: TrueTree, *, is_last: bool
) -> None:
    """What the parents of one layer stand for, by what their children do."""
    whole = len(truth.parents) - 1
    for parent in {edge.parent for edge in edges}:
        own = [edge for edge in edges if edge.parent == parent]
        if is_last:
            stands_for[own[0].layer + 1, parent] = whole
            continue
        weights = [
            (stands_for.get((edge.layer, edge.child), _NOTHING), max(edge.contribution, 0.0)) for edge in own
        ]
        stands_for[own[0].layer + 1, parent] = _majority(weights, truth)


def _majority(weights: Sequence[tuple[int, float]], truth: TrueTree) -> int:
    """The lowest node that covers more than half of the weight; nodes are numbered from the lowest up."""
    covered = dict.fromkeys(range(len(truth.parents)), 0.0)
    for node, weight in weights:
        for each in () if node == _NOTHING else (node, *truth.ancestors(node)):
            covered[each] += weight
    half = sum(weight for _, weight in weights) / 2
    return next((node for node, weight in covered.items() if weight > half), _NOTHING)


def compare_trees(
    layers: Sequence[LayerTrace],
    sample: int,
    owners: Int64[Tensor, " capsules"],
    truth: TrueTree,
    *,
    top: int = 32,
    seed: int = 0,
) -> Trees:
    """The carved tree of one image against the true one, beside an even-split and a random tree.

    All three keep the `top` strongest edges of each layer, whatever the threshold: they differ in the
    couplings alone. Random trees have random activations too, so that every edge is equally likely.

    Args:
        layers: Fully connected routed layers, as in `parse_tree`.
        sample: Which image of the batch.
        owners: What its capsules look at, as `owners_of_capsules` has it.
        truth: The true tree.
        top: Edges of each layer.
        seed: Of the random tree.
    """
    looks_at = parts_looked_at(owners, truth)
    chosen = int(layers[-1].routed.activations[sample].argmax())

    def measure(traces: Sequence[LayerTrace]) -> Agreement:
        carved = parse_tree(traces, chosen=chosen, threshold=0.0, top=top)
        return measure_agreement(carved.edges, looks_at, truth)

    alone = [_only(trace, sample) for trace in layers]
    rng = generator(seed, "random tree", sample)
    return Trees(
        measure(alone), measure([with_even_couplings(each) for each in alone]), measure(_random(alone, rng))
    )


def parts_looked_at(owners: Int64[Tensor, " capsules"], truth: TrueTree) -> list[int]:
    """For each capsule the number of the true part that it looks at, from 0, or -1."""
    return [number - 1 if 1 <= number <= truth.num_parts else _NOTHING for number in owners.tolist()]


def _only(trace: LayerTrace, sample: int) -> LayerTrace:
    """One image of a batch, children in one row."""
    children, routed = trace.children, trace.routed
    assert routed.coupling is not None
    return LayerTrace(
        children._replace(
            poses=children.poses[sample][None], activations=children.activations[sample].flatten()[None]
        ),
        routed._replace(
            poses=routed.poses[sample][None],
            activations=routed.activations[sample][None],
            coupling=routed.coupling[sample][None],
        ),
    )


def with_even_couplings(trace: LayerTrace) -> LayerTrace:
    """The same layer with even couplings and its own activations."""
    coupling = torch.full_like(_coupling(trace), 1 / _coupling(trace).shape[-1])
    return trace._replace(routed=trace.routed._replace(coupling=coupling))


def _random(layers: Sequence[LayerTrace], rng: torch.Generator) -> list[LayerTrace]:
    made = []
    for trace in layers:
        coupling = torch.rand(_coupling(trace).shape, generator=rng) + 1e-6
        activations = torch.ones_like(trace.children.activations)
        made.append(
            LayerTrace(
                trace.children._replace(activations=activations),
                trace.routed._replace(coupling=coupling.to(activations)),
            )
        )
    return made


def _coupling(trace: LayerTrace) -> Tensor:
    assert trace.routed.coupling is not None
    return trace.routed.coupling
