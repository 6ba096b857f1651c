"""The parse tree of one image: the capsules and couplings that led to a class, as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import LayerTrace, UserError

from .evenness import Evenness, measure_evenness
from .saliency import GridShape, check_grid


@dataclass(frozen=True)
class Node:
    """A capsule; layer 0 is the first that votes, and the highest layer has one capsule per class."""

    layer: int
    index: int
    activation: float
    position: tuple[int, int, int] | None = None  # row, column, type


@dataclass(frozen=True)
class Edge:
    """A coupling from `child` in `layer` to `parent` in the layer above."""

    layer: int
    child: int
    parent: int
    coupling: float
    contribution: float  # the child's activation times the coupling


@dataclass(frozen=True)
class ParseTree:
    """What remains of a forward pass when walking back from one class.

    `edges` lead to the chosen class; `alternatives` are the other couplings above the threshold that start at
    a node of the tree. Edges are ordered by layer, then strongest contribution first. Where `top` cut some
    off, `nodes` and `edges` are the strongest of the tree, and `capsules_in_tree` counts all of it.

    The tree of a quantized network has the couplings and hidden activations of that network, and the class
    activations and evenness of the same network before quantization.
    """

    chosen: int
    class_activations: tuple[float, ...]
    layer_sizes: tuple[int, ...]
    thresholds: tuple[float, ...]  # one for each routed layer
    grid: GridShape | None
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    alternatives: tuple[Edge, ...]
    top: int | None = None  # edges that were kept of each layer; None: all
    capsules_in_tree: tuple[int, ...] = ()  # of each layer, with those that `top` cut off
    evenness: tuple[Evenness, ...] = ()  # of each routed layer; empty where it was not measured
    is_quantized: bool = False

    def __post_init__(self) -> None:
        if not self.capsules_in_tree:  # a tree built by hand is complete
            counts = tuple(len(self.layer(number)) for number in range(len(self.layer_sizes)))
            object.__setattr__(self, "capsules_in_tree", counts)

    def layer(self, number: int) -> tuple[Node, ...]:
        """The nodes of one layer, in the order of their index."""
        return tuple(node for node in self.nodes if node.layer == number)

    @property
    def is_cut(self) -> bool:
        """Whether capsules of the tree are missing from `nodes`, because `top` cut off all their edges."""
        return any(len(self.layer(number)) < count for number, count in enumerate(self.capsules_in_tree))

    @property
    def is_split(self) -> bool:
        """Whether couplings split each capsule: positive and adding up to one, as far as was measured."""
        return all(layer.is_split for layer in self.evenness)

    def to_json(self) -> str:
        """All fields as JSON text."""
        return json.dumps(asdict(self), allow_nan=False)


@dataclass(frozen=True)
class _Layer:
    activations: NDArray[np.float64]  # (in_caps,)
    coupling: NDArray[np.float64]  # (in_caps, out_caps)
    threshold: float

    @property
    def above(self) -> NDArray[np.bool_]:
        return self.coupling > self.threshold

    def edges(self, number: int, pairs: NDArray[np.bool_], top: int | None = None) -> list[Edge]:
        """The marked (child, parent) pairs, strongest contribution first, at most `top`."""
        children, parents = np.nonzero(pairs)
        coupling = self.coupling[children, parents]
        contribution = self.activations[children] * coupling
        order = np.argsort(-contribution, kind="stable")[:top]
        columns = (values[order].tolist() for values in (children, parents, coupling, contribution))
        return [Edge(number, *values) for values in zip(*columns, strict=True)]


def parse_tree(
    layers: Sequence[LayerTrace],
    *,
    sample: int = 0,
    grid: GridShape | None = None,
    chosen: int | None = None,
    threshold: float | None = None,
    top: int | None = 32,
    unquantized: Sequence[LayerTrace] | None = None,
) -> ParseTree:
    """Walk back from a class along couplings above a threshold (thesis, Parse Trees Visualization).

    A capsule is shown only if it receives at least one coupling above the threshold, counted before `top`
    cuts the drawing. Those of the first layer, which receive none, are always eligible.

    Args:
        layers: Fully connected routed layers from a forward pass with `return_routing=True`, classes last.
        sample: Which image of the batch.
        grid: Height, width and types of the first children, where they stand on a grid.
        chosen: The class to explain; by default the predicted one.
        threshold: Couplings must exceed it; by default an equal share, 1 / parents, in each layer.
        top: Keep this many edges of each layer, those of largest activation times coupling; None keeps all.
        unquantized: The same layers before their couplings were quantized, if `layers` are quantized.

    Examples:
        >>> model = create_model("dr_capsnet_minimal", pretrained=True).eval()
        >>> output = model(torch.rand(1, 1, 28, 28), return_routing=True)
        >>> tree = parse_tree(output.layers, top=8)
    """
    _require_layers(layers)
    found = [_read(trace, number, sample, threshold) for number, trace in enumerate(layers)]
    _check_chain(found, grid, top)
    lengths = _row(layers[-1].routed.activations, sample)
    if not np.isfinite(lengths).all():
        raise UserError("the activations are not finite: check the images and the weights of the network")
    root = int(lengths.argmax()) if chosen is None else chosen
    if not 0 <= root < len(lengths):
        raise UserError(f"chosen must lie in 0..{len(lengths) - 1}, got {root}")
    edges = _walk_back(found, root, top)
    own = layers if unquantized is None else unquantized
    lengths = _row(own[-1].routed.activations, sample)
    values = [*(layer.activations for layer in found), lengths]
    return ParseTree(
        chosen=root,
        class_activations=tuple(lengths.tolist()),
        layer_sizes=tuple(len(activations) for activations in values),
        thresholds=tuple(layer.threshold for layer in found),
        grid=grid,
        nodes=_nodes(edges, values, root, grid),
        edges=tuple(edges),
        alternatives=tuple(_alternatives(found, edges)),
        top=top,
        capsules_in_tree=_count_members(found, root),
        evenness=_measure(own, sample, root),
        is_quantized=unquantized is not None,
    )


def _measure(layers: Sequence[LayerTrace], sample: int, root: int) -> tuple[Evenness, ...]:
    couplings = [trace.routed.coupling[sample][None] for trace in layers if trace.routed.coupling is not None]
    *hidden, last = couplings
    return (*map(measure_evenness, hidden), measure_evenness(last, torch.tensor([root], device=last.device)))


def _row(values: Tensor, sample: int) -> NDArray[np.float64]:
    return values[sample].detach().double().cpu().numpy()


def _require_layers(layers: Sequence[LayerTrace]) -> None:
    given = layers if isinstance(layers, Iterable) else [layers]
    wrong = [each for each in given if not isinstance(each, LayerTrace)]
    if wrong:
        raise UserError(
            "a tree is read from the layers of an output: output = model(images, return_routing=True), then "
            f"parse_tree(output.layers); got a {type(wrong[0]).__name__} in their place"
        )


def _read(trace: LayerTrace, number: int, sample: int, threshold: float | None) -> _Layer:
    coupling = trace.routed.coupling
    if coupling is None:
        raise UserError(f"routed layer {number} kept no couplings: run the model with return_routing=True")
    if coupling.ndim != 3:
        raise UserError(
            f"routed layer {number} is convolutional, couplings {tuple(coupling.shape)}; a tree needs fully "
            "connected layers: pass only those, or draw a saliency map"
        )
    if not -len(coupling) <= sample < len(coupling):
        raise UserError(f"sample {sample} is not in a batch of {len(coupling)}")
    activations = _row(trace.children.activations.flatten(1), sample)
    share = 1 / coupling.shape[2] if threshold is None else threshold
    limit = coupling.new_tensor(share).item()  # rounded as couplings are: an equal share is not above itself
    return _Layer(activations, _row(coupling, sample), limit)


def _check_chain(layers: list[_Layer], grid: GridShape | None, top: int | None) -> None:
    if not layers:
        raise UserError("no routed layers: run the model with return_routing=True")
    if top is not None and top < 1:
        raise UserError(f"top must be at least 1, got {top}")
    for below, above in pairwise(layers):
        if below.coupling.shape[1] != above.coupling.shape[0]:
            raise UserError(
                f"a layer of {below.coupling.shape[1]} parents is followed by one of "
                f"{above.coupling.shape[0]} children: pass consecutive layers"
            )
    if grid is not None:
        check_grid(grid, len(layers[0].activations))


def _walk_back(layers: list[_Layer], root: int, top: int | None) -> list[Edge]:
    edges: list[list[Edge]] = []
    parents = [root]
    for number in reversed(range(len(layers))):
        edges.append(layers[number].edges(number, _pairs_to(parents, layers, number), top))
        parents = sorted({edge.child for edge in edges[-1]})
    return [edge for kept in reversed(edges) for edge in kept]


def _count_members(layers: list[_Layer], root: int) -> tuple[int, ...]:
    """Capsules of each layer that lead to the root, however weakly."""
    counts, parents = [1], [root]
    for number in reversed(range(len(layers))):
        parents = np.flatnonzero(_pairs_to(parents, layers, number).any(axis=1)).tolist()
        counts.append(len(parents))
    return tuple(reversed(counts))


def _pairs_to(parents: list[int], layers: list[_Layer], number: int) -> NDArray[np.bool_]:
    """Marks the (child, parent) pairs of a layer that lead to some of its parents."""
    pairs = np.zeros_like(layers[number].above)
    pairs[:, parents] = layers[number].above[:, parents]
    if number:
        pairs[~layers[number - 1].above.any(axis=0)] = False  # in-degree 0
    return pairs


def _alternatives(layers: list[_Layer], edges: list[Edge]) -> list[Edge]:
    found: list[Edge] = []
    for number, layer in enumerate(layers):
        kept = [edge for edge in edges if edge.layer == number]
        pairs = np.zeros_like(layer.above)
        children = [edge.child for edge in kept]
        pairs[children] = layer.above[children]
        pairs[children, [edge.parent for edge in kept]] = False
        found += layer.edges(number, pairs)
    return found


def _nodes(
    edges: list[Edge], values: list[NDArray[np.float64]], root: int, grid: GridShape | None
) -> tuple[Node, ...]:
    kept = sorted({(edge.layer, edge.child) for edge in edges} | {(len(values) - 1, root)})
    return tuple(
        Node(layer, index, float(values[layer][index]), _position(index, grid) if layer == 0 else None)
        for layer, index in kept
    )


def _position(index: int, grid: GridShape | None) -> tuple[int, int, int] | None:
    if grid is None:
        return None
    place, kind = divmod(index, grid[2])
    return (*divmod(place, grid[1]), kind)
