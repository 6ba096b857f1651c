"""What the page says of the capsule under the pointer."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from torchcaps.core import UserError
from torchcaps.parse import Edge, Node, ParseTree, ReceptiveField

from ..pictures import Array
from .image import seen_patch

_MOST_ROWS = 8


class Bar(TypedDict):
    """One coupling of a capsule."""

    name: str
    value: float
    leads: bool  # to the chosen class
    key: str  # of the capsule at its other end


class Fact(TypedDict):
    """What the panel shows of one capsule."""

    title: str
    text: str
    heading: str
    even: float  # where the bars have a mark: an even share, 1 / parents
    bars: list[Bar]
    below: NotRequired[list[Bar]]  # couplings of its own children, of a capsule between two layers
    patch: NotRequired[list[float]]  # left, top, width and height of what it sees, in pixels of the image


def tree_facts(
    tree: ParseTree,
    names: list[str],
    shape: tuple[int, ...],
    *,
    field: ReceptiveField | None,
    shares: Array | None,
) -> dict[str, Fact]:
    """The facts of every capsule in the tree, by the name that its mark has on the page."""
    last = len(tree.layer_sizes) - 1
    if shares is not None and shares.shape != (tree.layer_sizes[last - 1],):
        raise UserError(f"{tree.layer_sizes[last - 1]} capsules vote for classes, got shares {shares.shape}")
    facts = {}
    for node in tree.nodes:
        fact = _of_class(node, tree, names) if node.layer == last else _of_capsule(node, tree, names)
        if field is not None and node.position is not None:
            fact["patch"] = [float(value) for value in seen_patch(node, field, shape)]
        if shares is not None and node.layer == last - 1:
            fact["text"] += f" It adds {shares[node.index]:+z.1%} to the length of {names[tree.chosen]}."
        facts[key_name((node.layer, node.index))] = fact
    return facts


def key_name(key: tuple[int, int]) -> str:
    """What the mark of a capsule is called on the page."""
    return f"{key[0]}-{key[1]}"


def _of_class(node: Node, tree: ParseTree, names: list[str]) -> Fact:
    children = [edge for edge in tree.edges if edge.layer == node.layer - 1][:_MOST_ROWS]
    return {
        "title": names[node.index],
        "text": f"Activation {node.activation:.3f}.",
        "heading": f"Strongest children{_rounded(tree)}; {_mark(tree, node.layer)}",
        "even": 1 / tree.layer_sizes[-1],
        "bars": [_bar_to_child(edge) for edge in children],
    }


def _bar_to_child(edge: Edge) -> Bar:
    return _bar(edge, f"capsule {edge.child}", (edge.layer, edge.child), leads=True)


def _of_capsule(node: Node, tree: ParseTree, names: list[str]) -> Fact:
    last = len(tree.layer_sizes) - 1
    to_parents = [
        (edge, leads)
        for edges, leads in ((tree.edges, True), (tree.alternatives, False))
        for edge in edges
        if (edge.layer, edge.child) == (node.layer, node.index)
    ]
    to_parents.sort(key=lambda pair: -pair[0].coupling)
    place = "" if node.position is None else "Row {}, column {}, type {}. ".format(*node.position)
    is_rounded = _rounded(tree) if node.layer else ""
    fact: Fact = {
        "title": f"Capsule {node.index}",
        "text": f"{place}Activation {node.activation:.3f}{is_rounded}.",
        "heading": f"Couplings above the threshold{_rounded(tree)}; {_mark(tree, node.layer + 1)}",
        "even": 1 / tree.layer_sizes[node.layer + 1],
        "bars": [
            _bar(
                edge,
                names[edge.parent] if edge.layer + 1 == last else f"capsule {edge.parent}",
                (edge.layer + 1, edge.parent),
                leads=leads,
            )
            for edge, leads in to_parents[:_MOST_ROWS]
        ],
    }
    if node.layer:
        children = [e for e in tree.edges if (e.layer + 1, e.parent) == (node.layer, node.index)]
        fact["below"] = [_bar_to_child(edge) for edge in children[:_MOST_ROWS]]
    return fact


def _mark(tree: ParseTree, parents: int) -> str:
    """What the mark on the bars of couplings to a layer is."""
    name = "an even share" if tree.is_split else "1 / parents"
    return f"the mark is {name}, {1 / tree.layer_sizes[parents]:.3f}."


def _rounded(tree: ParseTree) -> str:
    return ", with rounded couplings" if tree.is_quantized else ""


def _bar(edge: Edge, name: str, end: tuple[int, int], *, leads: bool) -> Bar:
    return {"name": name, "value": round(edge.coupling, 4), "leads": leads, "key": key_name(end)}
