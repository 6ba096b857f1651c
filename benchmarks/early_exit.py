"""Early exit against a fixed number of iterations: `python benchmarks/early_exit.py RUN`.

Accuracy and time of the routing alone, on the votes that the run's network casts for its test images.
"""

import sys
import time
from pathlib import Path

import torch

from torchcaps.layers.vote import cast_votes
from torchcaps.routing.dynamic import dynamic_routing
from torchcaps.routing.early_exit import settled_dynamic_routing
from torchcaps.train import load_run, load_split

IMAGES, BATCH, REPEATS = 1000, 250, 5
FIXED = (1, 3, 10, 50)
TOLERANCES = (1e-3, 1e-2, 5e-2)


@torch.no_grad()
def main(folder):
    run = load_run(Path(folder))
    data, pipeline = load_split(run.recipe.data, "test")
    _, inputs = pipeline.for_evaluation(data.images[:IMAGES])
    labels = data.labels[:IMAGES].split(BATCH)
    layer = run.model.classes
    batches = []
    for part in inputs.split(BATCH):
        children = run.model(part, return_routing=True).layers[-1].children
        batches.append((cast_votes(children.poses, layer.weight), children.activations))
    print("| routing | rounds, mean | most | accuracy | ms an image |")
    print("| --- | --- | --- | --- | --- |")
    for iterations in FIXED:

        def fixed(votes, activations, iterations=iterations):
            routed = dynamic_routing(votes, activations, iterations=iterations, bias=layer.routing.bias)
            return routed, torch.full((len(votes),), iterations)

        report(f"fixed {iterations}", fixed, batches, labels)
    for tolerance in TOLERANCES:

        def settled(votes, activations, tolerance=tolerance):
            return settled_dynamic_routing(votes, activations, tolerance=tolerance, bias=layer.routing.bias)

        report(f"until settled to {tolerance:g}, at most 50", settled, batches, labels)


def report(name, route, batches, labels):
    """One line: rounds and accuracy over all batches, the fastest of a few passes."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        results = [route(*batch) for batch in batches]
        times.append(time.perf_counter() - started)
    rounds = torch.cat([taken for _, taken in results]).float()
    hits = [routed.activations.argmax(1) == part for (routed, _), part in zip(results, labels, strict=True)]
    accuracy = torch.cat(hits).float().mean()
    cost = 1000 * min(times) / len(rounds)
    print(f"| {name} | {rounds.mean():.1f} | {rounds.max():.0f} | {accuracy:.2%} | {cost:.3f} |")


if __name__ == "__main__":
    main(sys.argv[1])
