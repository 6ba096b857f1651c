"""The numbers that describe the health of one routed layer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ActivationRange:
    """Mean, smallest and largest of some activations."""

    mean: float
    min: float
    max: float


@dataclass(frozen=True, kw_only=True)
class LayerHealth:
    """One routed layer on one batch; shares lie in [0, 1].

    On a grid a capsule is a type; it counts as dead or starved only if it is so at all positions together.
    """

    layer: int  # 0 is the first routed one
    children: int
    parents: int
    positions: int  # of the parents; 1 where the layer is fully connected
    dead_children: float  # share whose activation stays below a limit for every image
    dead_parents: float
    starved_parents: float  # share that receives less than a limit times the mean coupling
    largest_share: float  # of all coupling, the part of the parent that receives most
    from_uniform: float  # mean distance of `parent_shares` from an even split; 1: one parent for each child
    tree: float  # T of Peer 2019: 1 - mean entropy of couplings / ln parents; 0 for a single parent
    diversity: float  # D of Peer 2019: the largest deviation over the batch of a parent's activation
    child_activations: ActivationRange
    activations: ActivationRange  # of the parents
