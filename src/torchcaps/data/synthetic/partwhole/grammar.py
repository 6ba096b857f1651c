"""Which arrangements are classes, where children stand, and the tree that all images of a design share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import cos, pi, prod, sin

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchcaps.core import generator

from .design import Design
from .shapes import KINDS

_PART = 0.9  # radius of a thing over that of its place: neighbours keep apart
_LISTED = 8  # up to so many children, all orders of them are listed


@dataclass(frozen=True)
class Tree:
    """The true tree: parts first, then each level above, the whole last.

    Attributes:
        names: Of the nodes, such as "triangle" or "object 1/disc".
        parents: The number of each node's parent; that of the whole is -1.
        levels: 0 for parts, the highest for the whole.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    levels: tuple[int, ...]

    @property
    def num_parts(self) -> int:
        """Nodes without children."""
        return self.levels.count(0)

    def ancestors(self, node: int) -> list[int]:
        """The nodes above `node`, nearest first."""
        found = []
        while self.parents[node] >= 0:
            node = self.parents[node]
            found.append(node)
        return found


def build_tree(branches: tuple[int, ...]) -> Tree:
    """The tree of a design; the things of a level are numbered alike in every image."""
    names, parents, levels = [], [], []
    counts = [prod(branches[level:]) for level in range(len(branches) + 1)]  # nodes of each level
    first = [sum(counts[:level]) for level in range(len(counts))]
    for level, count in enumerate(counts):
        for number in range(count):
            is_whole = level == len(branches)
            parents.append(-1 if is_whole else first[level + 1] + number // branches[level])
            levels.append(level)
            names.append(_name(branches, level, number))
    return Tree(tuple(names), tuple(parents), tuple(levels))


def _name(branches: tuple[int, ...], level: int, number: int) -> str:
    if level == len(branches):
        return "object" if level == 1 else "scene"
    own = tuple(KINDS)[number % branches[0]] if level == 0 else f"object {number % branches[level] + 1}"
    if level + 1 == len(branches):
        return own
    return f"{_name(branches, level + 1, number // branches[level])}/{own}"


@lru_cache(maxsize=64)
def orders(children: int, count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """`count` different orders of `children` things, chosen by a seed."""
    if children <= _LISTED:
        every = list(permutations(range(children)))
        chosen = torch.randperm(len(every), generator=generator(seed, "partwhole orders", children))
        return tuple(every[number] for number in chosen[:count].tolist())
    rng, found = generator(seed, "partwhole orders", children), dict[tuple[int, ...], None]()
    while len(found) < count:
        found[tuple(torch.randperm(children, generator=rng).tolist())] = None
    return tuple(found)


def places(children: int) -> Float[Tensor, "{children} 2"]:
    """Where children stand in the unit disc: on a ring with one place left free, which shows its turn."""
    radius = 1 - place_radius(children)
    angles = [2 * pi * (number + 1) / (children + 1) - pi / 2 for number in range(children)]
    return torch.tensor([[radius * cos(angle), radius * sin(angle)] for angle in angles])


def place_radius(children: int) -> float:
    """The radius of each place: neighbours on the ring touch."""
    half = sin(pi / (children + 1))
    return half / (1 + half)


def thing_radius(children: int) -> float:
    """The radius of the thing at a place."""
    return _PART * place_radius(children)


def class_orders(design: Design) -> Int64[Tensor, "classes children"]:
    """For each class the place at which each child of the whole stands."""
    return torch.tensor(orders(design.branches[-1], design.classes, design.grammar))


def inner_orders(design: Design, level: int) -> Int64[Tensor, "things children"]:
    """The same for the things of an inner level, counted from 1; they are alike in all classes."""
    kinds = orders(design.branches[level - 1], design.branches[level], design.grammar)
    return torch.tensor(kinds)
