"""Early exit against a fixed number of iterations: `python benchmarks/early_exit.py RUN RESULTS`.

Accuracy and time of the routing alone, on the votes that the run's network casts for its test images. The
rows go to `RESULTS/early-exit.json`.
"""

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

import torch

from torchcaps.core import as_plain
from torchcaps.experiments.records import Protocol, RunResult
from torchcaps.experiments.results import summarise, write_results
from torchcaps.layers.vote import cast_votes
from torchcaps.routing.dynamic import DynamicRouting, dynamic_routing
from torchcaps.routing.early_exit import settled_dynamic_routing
from torchcaps.train import load_labelled, load_run
from torchcaps.train.run import provenance

IMAGES, BATCH, REPEATS = 1000, 250, 2
FIXED = (1, 3, 10, 50)
TOLERANCES = (1e-3, 1e-2, 5e-2)
METRICS = ("test_accuracy", "rounds", "milliseconds")


def main(folder, results):
    run = load_run(Path(folder))
    facts = {"parameters": sum(p.numel() for p in run.model.parameters()), "precision": "32"}
    facts |= {"seed": run.recipe.seed, "recipe": as_plain(run.recipe), **provenance(torch.device("cpu"))}
    routing = getattr(getattr(run.model, "classes", None), "routing", None)
    if not isinstance(routing, DynamicRouting):
        sys.exit(f"the last layer of {folder} does not route by dynamic, which this script measures")
    rounds = f"network with {routing.iterations} rounds"
    note = f"{IMAGES:,} test images, {rounds}, routing alone, time of one image"
    rows = []
    batches = votes_of(run)
    for setting, route in ways(routing.bias):
        made = measure(route, batches) | facts
        print(setting, json.dumps(made["metrics"]), flush=True)
        result = RunResult.from_json(made)
        rows += [
            summarise([result], setting=setting, metric=metric, protocols=[Protocol(note=note)])
            for metric in METRICS
        ]
    write_results(Path(results), "early-exit", rows, "python benchmarks/early_exit.py RUN results")


@torch.no_grad()
def votes_of(run):
    """Votes, activations and labels, batch by batch."""
    data, pipeline = load_labelled(run, "test")
    inputs = pipeline.for_evaluation(data.images[:IMAGES])[1]
    batches = []
    for part, labels in zip(inputs.split(BATCH), data.labels[:IMAGES].split(BATCH), strict=True):
        children = run.model(part, return_routing=True).layers[-1].children
        batches.append((cast_votes(children.poses, run.model.classes.weight), children.activations, labels))
    return batches


def ways(bias):
    """Names and functions from votes and activations to parents and rounds."""
    for iterations in FIXED:

        def fixed(votes, activations, iterations=iterations):
            routed = dynamic_routing(votes, activations, iterations=iterations, bias=bias)
            return routed, torch.full((len(votes),), iterations)

        yield f"fixed {iterations}", fixed
    for tolerance in TOLERANCES:

        def settled(votes, activations, tolerance=tolerance):
            return settled_dynamic_routing(votes, activations, tolerance=tolerance, bias=bias)

        yield f"until settled to {tolerance:g}, at most 50", settled


@torch.no_grad()
def measure(route, batches):
    """Rounds and accuracy over all batches, and the fastest of a few passes."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        results = [route(votes, activations) for votes, activations, _ in batches]
        times.append(time.perf_counter() - started)
    rounds = torch.cat([taken for _, taken in results]).double()
    answers = [routed.activations.argmax(1) for routed, _ in results]
    hits = [answer == labels for answer, (*_, labels) in zip(answers, batches, strict=True)]
    metrics = {
        "test_accuracy": float(torch.cat(hits).double().mean()),
        "rounds": float(rounds.mean()),
        "milliseconds": 1000 * min(times) / len(rounds),
    }
    return {"metrics": metrics, "seconds": round(sum(times), 3)}


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("results")
    given = parser.parse_args()
    main(given.run, given.results)
