"""Chapter 6, REM: whole parse trees of a network of small layers, without and with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from torchcaps.data import LabelledImages
from torchcaps.parse import Edge, Levels, Node, ParseTree, parse_tree, quantized, some_images
from torchcaps.train import Pipeline, load_labelled
from torchcaps.viz import Forest, draw_forest, to_png

from ..plan import (
    FIRST_SEED,
    Claim,
    Finding,
    Job,
    Mean,
    RowsOf,
    decide,
    difference,
    register,
)
from ..records import Details, Picture, Rows
from .setting import TreeSetting, pairs_of, rem_pair
from .tables import DEVIATIONS, NO_DECODER, on_rem, train_and_count

LABEL = "fig:parse_trees_cifar10_samples"
_NETWORK = "parse CapsNet"
_LEVELS = (17, 17, 17, 11)  # an equal share, of 16 parents or of 10 classes, is a level and not rounded up
_CLASSES = (0, 3, 7, 8)  # airplane, cat, horse, ship
_MOST = 1000  # test images whose trees are walked, one after the other
_BATCH = 250
_FEWEST = 1  # decided children of an image that a comparison needs
_MOST_EMPTY = 50  # percent of empty trees that it may have


@torch.no_grad()
def walk_trees(
    network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, levels: Levels
) -> Iterator[ParseTree]:
    """The whole tree of every image, in the quantized network."""
    for part in torch.split(data.images, _BATCH):
        with quantized(network, levels):
            layers = network(pipeline.for_evaluation(part).inputs, return_routing=True).layers
        yield from (parse_tree(layers, sample=sample, top=None) for sample in range(len(part)))


def count_capsules(trees: Sequence[ParseTree]) -> list[float]:
    """Capsules of each layer that are part of a tree, mean over trees."""
    layers = range(len(trees[0].layer_sizes))
    return [sum(len(tree.layer(number)) for tree in trees) / len(trees) for number in layers]


def pack_tree(tree: ParseTree) -> str:
    """A tree as short text: what leads to the class, in two decimals."""
    fields = {
        "chosen": tree.chosen,
        "classes": [round(length, 2) for length in tree.class_activations],
        "sizes": tree.layer_sizes,
        "thresholds": tree.thresholds,
        "nodes": [(node.layer, node.index, round(node.activation, 2)) for node in tree.nodes],
        "edges": [(edge.layer, edge.child, edge.parent, round(edge.coupling, 2)) for edge in tree.edges],
    }
    return json.dumps(fields, separators=(",", ":"))


def unpack_tree(text: str) -> ParseTree:
    """The tree that was packed, without its alternatives."""
    fields = json.loads(text)
    nodes = tuple(Node(*values) for values in fields["nodes"])
    lengths = {(node.layer, node.index): node.activation for node in nodes}
    return ParseTree(
        chosen=fields["chosen"],
        class_activations=tuple(fields["classes"]),
        layer_sizes=tuple(fields["sizes"]),
        thresholds=tuple(fields["thresholds"]),
        grid=None,
        nodes=nodes,
        edges=tuple(
            Edge(layer, child, parent, coupling, coupling * lengths[layer, child])
            for layer, child, parent, coupling in fields["edges"]
        ),
        alternatives=(),
    )


def grow_trees(job: Job) -> None:
    """Train, and count the trees and the capsules in them; the first seed stores some trees to draw."""
    assert isinstance(job.run.setting, TreeSetting)
    trained, outcome = train_and_count(job)
    network, levels = trained.model, job.run.setting.levels
    data, pipeline = load_labelled(trained, "test", data_dir=job.data_dir)
    trees = list(walk_trees(network, some_images(data, _MOST), pipeline, levels=levels))
    in_tree = count_capsules(trees)
    sizes = {
        "capsules_in_tree": sum(in_tree),
        "capsules_in_tree_share": sum(in_tree) / sum(trees[0].layer_sizes),
        "empty_share": sum(not tree.edges for tree in trees) / len(trees),
    }
    details = Details(series={"in_tree": np.array(in_tree)})
    if job.run.seed == FIRST_SEED:  # pictures of one seed are enough
        shown = data.subset([int((data.labels == number).int().argmax()) for number in _CLASSES])
        details = Details(
            series={**details.series, "labels": np.array(shown.labels.tolist())},
            names=tuple(shown.classes),
            pictures={"images": Picture.pack(pipeline.for_evaluation(shown.images).images)},
            trees=tuple(pack_tree(tree) for tree in walk_trees(network, shown, pipeline, levels=levels)),
        )
    job.leave_result(replace(outcome.with_metrics(sizes), details=details))


def draw_trees(rows: Rows) -> bytes | None:
    """The trees of the same images, a row without and one with REM; None before the first seed has run."""
    runs = ((row.variant, run.details) for row in rows for run in row.runs)
    shown = {variant: details for variant, details in runs if details.trees}
    if not shown:
        return None
    forests = {
        variant: Forest([unpack_tree(text) for text in details.trees], details.series["in_tree"].tolist())
        for variant, details in shown.items()
    }
    some = next(iter(shown.values()))
    images, labels = some.pictures["images"].unpack(), some.series["labels"].tolist()
    return to_png(draw_forest(images, forests, class_names=some.names, labels=labels))


def fewer_capsules(rows_of: RowsOf) -> Finding:
    """With REM trees have fewer capsules, where both networks decide anything."""
    rows = rows_of(LABEL)
    metrics = ("capsules_in_tree", "decided", "empty_share")
    counts, decided, empty = (pairs_of(rows, metric).get(_NETWORK) for metric in metrics)
    if counts is None or decided is None or empty is None:
        return Finding("open", "the network has not been trained both ways")
    because = (
        f"{counts.plain.ours:.1f} capsules without, {counts.rem.ours:.1f} with REM; {empty.plain.ours:.1f} "
        f"and {empty.rem.ours:.1f} % of the trees are the class alone"
    )
    if max(row.ours for row in empty) > _MOST_EMPTY or min(row.ours for row in decided) < _FEWEST:
        return Finding("open", f"{because}: too little is decided to compare them")
    return Finding(decide(difference(Mean.of_row(counts.plain), Mean.of_row(counts.rem))), because)


register(
    on_rem(
        label=LABEL,
        title="Parse trees of CIFAR-10 test images without and with REM",
        data=("cifar10",),
        gpu_minutes=500,
        seeds=3,
        metrics=(
            *("test_accuracy", "quantized_accuracy", "entropy", "decided", "sparsity"),
            *("capsules_in_tree", "capsules_in_tree_share", "empty_share"),
        ),
        perform=grow_trees,
        settings=rem_pair(
            _NETWORK, "cifar10/parse_capsnet", {}, levels=_LEVELS, smoke={"model.channels": [4, 4, 4]}
        ),
        draw=draw_trees,
        claims=(Claim("Fewer capsules are part of the tree with REM.", fewer_capsules),),
        deviations=(
            "The thesis does not say what feeds the 16 primary capsules: ours is the stem of "
            "Efficient-CapsNet.",
            "Trees are those of the quantized network. Hidden layers have 17 levels, where the thesis has "
            "11: an equal share of 16 parents is then a level, and is not rounded up to a coupling above it.",
            "A capsule is in the tree if a path of couplings above an equal share leads from it to the "
            "predicted class, and, unless it is primary, if it receives such a coupling itself. The class "
            f"capsule counts too. Numbers are means over at most {_MOST:,} test images; the share is that of "
            "all capsules of the network.",
            "Where few couplings are decided, trees are small for that reason alone: empty trees have "
            "nothing but the class.",
            "The figure shows the first seed, and the first test image of each of four classes, whatever it "
            "is predicted as. A capsule has the same place in all trees of a network.",
            "Fewer seeds than the thesis's five.",
            "Decided children are those of an image whose coupling to its class is not rounded to an equal "
            "share.",
            NO_DECODER,
            *DEVIATIONS,
        ),
    )
)
