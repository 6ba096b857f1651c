"""What other readings of couplings give: `python benchmarks/tree_readings.py RESULTS RUN...`.

Runs are Efficient-CapsNets on datasets of the thesis, as they are or with pruning, of one seed or several; a
name from `torchcaps weights list` is one too. Couplings of the test images are made again from the same votes
in ways that the thesis may have meant and quantized to eleven levels, and the classes are pooled by them; the
first way is ours. The rows go to `RESULTS/tree-readings.json`, and the readings that have the thesis's
entropies are printed.
"""

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import defaultdict
from pathlib import Path
from statistics import mean

import torch

from torchcaps.core import as_plain
from torchcaps.experiments.records import Protocol, RunResult
from torchcaps.experiments.results import summarise, write_results
from torchcaps.layers.vote import cast_votes
from torchcaps.parse import Keys, count_trees, quantization_indices
from torchcaps.routing.self_attention import attended_votes
from torchcaps.train import load_labelled, load_run
from torchcaps.train.run import provenance
from torchcaps.zoo import find_run

LEVELS, CLASSES, BATCH = 11, 10, 250
SAME = 0.5  # bits from the thesis's figure that count as the same
TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "svhn": "SVHN"}
THESIS = {
    ("mnist", "plain"): {"accuracy": 99.55, "entropy": 4.38},
    ("mnist", "pruned"): {"accuracy": 99.58, "entropy": 2.60},
    ("fashion_mnist", "plain"): {"accuracy": 93.22, "entropy": 3.88},
    ("fashion_mnist", "pruned"): {"accuracy": 92.98, "entropy": 1.10},
    ("cifar10", "plain"): {"accuracy": 81.51, "entropy": 0.25},
    ("cifar10", "pruned"): {"accuracy": 81.49, "entropy": 0.005},
    ("svhn", "plain"): {"accuracy": 93.62, "entropy": 0.53},
    ("svhn", "pruned"): {"accuracy": 93.12, "entropy": 0.24},
}


def main(results, *folders):
    found = defaultdict(list)
    for folder in folders:
        run = load_run(find_run(folder))
        kind, data = "plain" if run.recipe.pruning is None else "pruned", run.recipe.data.name
        if data not in TITLES:
            sys.exit(f"{folder} was trained on {data}; the thesis has figures of {', '.join(TITLES)}")
        facts = {"parameters": sum(p.numel() for p in run.model.parameters()), "precision": "32"}
        facts |= {"seed": run.recipe.seed, "recipe": as_plain(run.recipe), **provenance(torch.device("cpu"))}
        votes, labels = votes_of(run)
        for reading, metrics, seconds in measure(votes, labels, run.model.classes.routing.prior):
            print(folder, reading, json.dumps(metrics), flush=True)
            made = {"metrics": {f"{kind}_{name}": value for name, value in metrics.items()}}
            found[data, kind, reading].append(RunResult.from_json(made | facts | {"seconds": seconds}))
    rows = [
        summarise(
            seeds,
            setting=f"{TITLES[data]}, {reading}",
            metric=f"{kind}_{name}",
            thesis=printed,
            protocols=[Protocol(note="all test images")],
        )
        for (data, kind, reading), seeds in found.items()
        for name, printed in THESIS[data, kind].items()
    ]
    write_results(Path(results), "tree-readings", rows, " ".join(["python", *sys.argv]))
    print_matches(found)


def print_matches(found):
    """The readings whose mean entropy over seeds is the thesis's, on some datasets and on all."""
    matched, where = defaultdict(set), {(data, kind) for data, kind, _ in found}
    for (data, kind, reading), seeds in found.items():
        entropy = mean(result.metrics[f"{kind}_entropy"] for result in seeds)
        if abs(entropy - THESIS[data, kind]["entropy"]) <= SAME:
            matched[reading].add((data, kind))
    everywhere = [reading for reading, places in matched.items() if places == where]
    print(f"matched by some: {dict(matched)}; by all: {everywhere or 'none'}")


@torch.no_grad()
def votes_of(run):
    """Votes and labels of all test images."""
    data, pipeline = load_labelled(run, "test")
    votes = []
    for images in data.images.split(BATCH):
        children = run.model(pipeline.for_evaluation(images)[1], return_routing=True).layers[-1].children
        votes.append(cast_votes(children.poses, run.model.classes.weight))
    return torch.cat(votes), data.labels


OURS = "over parents, then prior"


def couplings(votes, prior):
    """Names and couplings: what the softmax runs over, where the prior goes, how agreement is scaled."""
    raw = torch.einsum("biod,bod->bio", votes, votes.sum(1))
    scaled, small = raw * votes.shape[-1] ** -0.5, raw / votes.shape[-1]
    yield OURS, scaled.softmax(2) + prior
    yield "over parents, no prior", scaled.softmax(2)
    yield "over parents, prior inside", (scaled + prior).softmax(2)
    yield "over parents, agreement not scaled, then prior", raw.softmax(2) + prior
    yield "over parents, agreement divided by the pose's size, then prior", small.softmax(2) + prior
    yield "over children, then prior", scaled.softmax(1) + prior
    yield "over children, no prior", scaled.softmax(1)
    yield "over all pairs, no prior", scaled.flatten(1).softmax(1).view_as(scaled)


def levels_of(name, coupling):
    """Names and levels: rounded in the first place, and for our couplings also in other ways."""
    yield name, quantization_indices(coupling, LEVELS), LEVELS
    if name == OURS:
        floor = (coupling.clamp(0, 1) * (LEVELS - 1)).floor().to(torch.uint8)
        yield f"{name}, rounded down", floor, LEVELS
        for few in (6, 2):
            yield f"{name}, {few} levels", quantization_indices(coupling, few), few


@torch.no_grad()
def measure(votes, labels, prior):
    """Names, metrics and seconds of every reading."""
    for reading, coupling in couplings(votes, prior):
        for name, levels, count in levels_of(reading, coupling):
            started = time.perf_counter()
            routed = attended_votes(votes, votes[:, :, 0, 0], coupling=levels.to(votes.dtype) / (count - 1))
            predicted = routed.activations.argmax(1)
            images = torch.arange(len(levels))
            chosen = levels[images, :, predicted]
            accuracy = float((predicted == labels).double().mean())
            # the released code swaps the axes of couplings that come as (batch, parents, children)
            swapped = entropy_of(levels[images, predicted], predicted)
            ways = [*entropies(chosen, predicted, every_way=name == OURS), (", axes swapped", swapped)]
            for way, entropy in ways:
                metrics = {"accuracy": accuracy, "entropy": entropy}
                yield name + way, metrics, round(time.perf_counter() - started, 3)


def entropies(levels, predicted, *, every_way):
    """The entropy of whole trees; and where asked for, of parts of them and of few images at a time."""
    yield "", entropy_of(levels, predicted)
    if every_way:
        children = levels.split(1, dim=1)
        yield ", mean of single children", sum(entropy_of(c, predicted) for c in children) / len(children)
        batches = list(zip(levels.split(128), predicted.split(128), strict=True))
        yield ", mean of batches of 128", sum(entropy_of(*batch) for batch in batches) / len(batches)


def entropy_of(levels, predicted):
    return count_trees(Keys(levels.numpy(), predicted.numpy(), LEVELS, CLASSES)).entropy


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("runs", nargs="+")
    given = parser.parse_args()
    main(given.results, *given.runs)
