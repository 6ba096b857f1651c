"""What other readings of couplings give: `python benchmarks/tree_readings.py RESULTS RUN...`.

Runs are Efficient-CapsNets on MNIST, one as it is, one with pruning, or both. Couplings of the test images
are made again from the same votes in ways that the thesis may have meant and quantized to eleven levels, and
the classes are pooled by them; the first way is ours. The rows go to `RESULTS/tree-readings.json`.
"""

import json
import sys
import time
from pathlib import Path

import torch

from torchcaps.experiments.records import Protocol, RunResult
from torchcaps.experiments.results import summarise, write_results
from torchcaps.layers.vote import cast_votes
from torchcaps.parse import Keys, count_trees, quantization_indices
from torchcaps.routing.self_attention import attended_votes
from torchcaps.train import load_run, load_split
from torchcaps.train.run import provenance

LEVELS, CLASSES, BATCH = 11, 10, 250
THESIS = {
    "plain": {"accuracy": 99.55, "entropy": 4.38},
    "pruned": {"accuracy": 99.58, "entropy": 2.60},
}


def main(results, *folders):
    rows = []
    for folder in folders:
        run = load_run(Path(folder))
        kind = "plain" if run.recipe.pruning is None else "pruned"
        facts = {"parameters": sum(p.numel() for p in run.model.parameters()), "precision": "32"}
        facts |= {"seed": run.recipe.seed, **provenance(torch.device("cpu"))}
        votes, labels = votes_of(run)
        for setting, metrics, seconds in measure(votes, labels, run.model.classes.routing.prior):
            made = {"metrics": {f"{kind}_{name}": value for name, value in metrics.items()}}
            print(setting, json.dumps(made["metrics"]), flush=True)
            result = RunResult.from_json(made | facts | {"seconds": seconds})
            rows += [
                summarise(
                    [result],
                    setting=setting,
                    metric=f"{kind}_{name}",
                    thesis=THESIS[kind][name] if setting == OURS else None,
                    protocols=[Protocol(note=f"{len(labels):,} test images")],
                )
                for name in metrics
            ]
    write_results(Path(results), "tree-readings", rows, "python benchmarks/tree_readings.py results RUN RUN")


@torch.no_grad()
def votes_of(run):
    """Votes and labels of all test images."""
    data, pipeline = load_split(run.recipe.data, "test")
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
            chosen = levels[torch.arange(len(levels)), :, predicted]
            accuracy = float((predicted == labels).double().mean())
            for way, entropy in entropies(chosen, predicted, every_way=name == OURS):
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
    main(*sys.argv[1:])
