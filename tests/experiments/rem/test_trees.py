import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch
from experiments.made_rows import a_pair
from hypothesis import given, settings
from hypothesis import strategies as st
from parse.traces import random_layers

from torchcaps.experiments import EXPERIMENTS, LABELS
from torchcaps.experiments.plan import Job, Outcome
from torchcaps.experiments.records import RunResult
from torchcaps.experiments.rem import trees
from torchcaps.experiments.rem.trees import (
    LABEL,
    count_capsules,
    draw_trees,
    fewer_capsules,
    grow_trees,
    pack_tree,
    unpack_tree,
    walk_trees,
)
from torchcaps.experiments.results import gather_runs, summarise
from torchcaps.models import create_model
from torchcaps.parse import parse_tree, quantized
from torchcaps.prune import Lobster
from torchcaps.train import Machine, Silent
from torchcaps.train.recipe import Data

from splits import split_of

CPU = Machine(device="cpu")
SMALL = {"channels": (4, 4, 4)}


@pytest.fixture(scope="module")
def split():
    data, pipeline = split_of(Data(name="synthetic_cifar10"), "test")
    return data.subset(list(range(20))), pipeline


def is_above(row, parent):
    return row[parent] > 1 / len(row) + 1e-6  # a tenth in single precision is above one in double


def backtrack(layers, sample):
    """Capsules of each layer in the tree: sets, one coupling after the other."""
    couplings = [layer.routed.coupling[sample].tolist() for layer in layers]
    found = [{int(layers[-1].routed.activations[sample].argmax())}]
    for number in reversed(range(len(couplings))):
        children = set()
        for child, row in enumerate(couplings[number]):
            below = couplings[number - 1] if number else []
            receives = not number or any(is_above(before, child) for before in below)
            if receives and any(is_above(row, parent) for parent in found[0]):
                children.add(child)
        found.insert(0, children)
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.lists(st.integers(1, 6), min_size=2, max_size=5), st.floats(0.5, 5))
def test_capsules_are_counted_in_each_layer(seed, sizes, sharpness):
    layers = random_layers(seed, sizes, batch=3, sharpness=sharpness)
    grown = [parse_tree(layers, sample=sample, top=None) for sample in range(3)]
    slow = [backtrack(layers, sample) for sample in range(3)]
    assert count_capsules(grown) == pytest.approx(
        [sum(len(found[number]) for found in slow) / 3 for number in range(len(sizes))]
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 5))
def test_a_packed_tree_comes_back_to_two_decimals(seed, sharpness):
    tree = parse_tree(random_layers(seed, (5, 4, 3), sharpness=sharpness), top=None)
    again = unpack_tree(pack_tree(tree))
    for name in ("chosen", "layer_sizes", "thresholds", "grid"):
        assert getattr(again, name) == getattr(tree, name)
    assert again.class_activations == pytest.approx(tree.class_activations, abs=0.0051)
    for name in ("nodes", "edges"):
        packed, whole = (list(map(asdict, getattr(each, name))) for each in (again, tree))
        assert len(packed) == len(whole)
        for some, same in zip(packed, whole, strict=True):
            assert some == pytest.approx(same, abs=0.011)


def test_trees_are_those_of_the_quantized_network(split, monkeypatch):
    data, pipeline = split
    monkeypatch.setattr(trees, "_BATCH", 7)  # 20 images: the last batch is smaller
    torch.manual_seed(0)
    network = create_model("parse_capsnet", **SMALL).eval()
    for layer in network.capsules:
        layer.weight.data *= 8  # sharp enough to decide something
    grown = list(walk_trees(network, data, pipeline, levels=trees._LEVELS))
    with torch.no_grad(), quantized(network, trees._LEVELS):
        layers = network(pipeline.for_evaluation(data.images).inputs, return_routing=True).layers
    assert [[{node.index for node in tree.layer(number)} for number in range(5)] for tree in grown] == [
        backtrack(layers, sample) for sample in range(len(data))
    ]
    assert max(len(tree.edges) for tree in grown) > 32  # none is left out


def test_where_nothing_is_decided_the_class_stands_alone(split):
    network = create_model("parse_capsnet", **SMALL).eval()
    for layer in network.capsules:
        layer.weight.data.zero_()
    grown = walk_trees(network, split[0].subset([0, 1]), split[1], levels=trees._LEVELS)
    assert count_capsules(list(grown)) == [0, 0, 0, 0, 1]


@pytest.fixture
def trained(split, monkeypatch):
    """Runs get a network that is not trained."""
    found = Outcome(metrics={"decided": 2.0}, parameters=0, seconds=0.0, precision="32")
    torch.manual_seed(0)
    network = create_model("parse_capsnet", **SMALL).eval()
    monkeypatch.setattr(
        trees,
        "train_and_count",
        lambda *_: (SimpleNamespace(model=network, device=torch.device("cpu")), found),
    )
    monkeypatch.setattr(trees, "load_labelled", lambda *_, **__: split)


def test_a_run_says_how_many_capsules_and_the_first_seed_brings_trees(trained, tmp_path, monkeypatch):
    experiment = EXPERIMENTS[LABEL]
    rows = []
    for setting in experiment.settings:
        results = []
        for run in experiment.planned("smoke", seeds=2):
            if run.setting == setting:
                job = Job(run, tmp_path, CPU, Silent())
                grow_trees(job)
                content = json.loads((job.folder / "result.json").read_text())
                results.append(RunResult.from_json(content))
        row = summarise(results, setting=setting.name, metric="capsules_in_tree", protocols=[])
        rows.append(replace(row, network=setting.network, variant=setting.variant))
        for result in results:
            in_tree = result.details.series["in_tree"].sum()
            assert result.metrics["capsules_in_tree"] == pytest.approx(in_tree)
            assert result.metrics["capsules_in_tree_share"] == pytest.approx(in_tree / 74)
            assert result.metrics["empty_share"] == 1  # it has learnt nothing yet
            assert bool(result.details.trees) == (result.facts.seed == 42)
    drawn = []
    monkeypatch.setattr(trees, "to_png", lambda figure: drawn.append(figure) or b"picture")
    assert draw_trees(rows) == b"picture"
    words = [text.get_text() for text in drawn[0].axes[0].texts]
    assert words.index("without REM") < words.index("with REM")
    for details in (row.runs[0].details for row in rows):
        assert details.series["labels"].tolist() == [0, 3, 7, 8]
        assert len(details.trees) == details.pictures["images"].shape[0] == 4


def test_before_the_run_of_the_first_seed_there_is_a_page_without_a_picture(trained, tmp_path):
    experiment = EXPERIMENTS[LABEL]
    for run in list(experiment.planned("smoke", seeds=2))[2:]:
        job = Job(run, tmp_path, CPU, Silent())
        grow_trees(job)
        assert job.run.seed == 43
    assert gather_runs(experiment, tmp_path, tmp_path, budget="smoke", command="c") > 0
    assert not (tmp_path / f"{experiment.slug}.png").exists()
    assert ".png" not in (tmp_path / f"{experiment.slug}.md").read_text()


def rows_of(table, **changes):
    rows = []
    for number, metric in enumerate(("capsules_in_tree", "decided", "empty_share")):
        plain, rem = a_pair(
            "parse CapsNet",
            metric,
            *(table.get(way, (0.0,) * 3)[number] for way in ("Q", "REM")),
            **{"seeds": 3, **changes},
        )
        rows += [row for row, way in ((plain, "Q"), (rem, "REM")) if way in table]
    return lambda label: rows if label == LABEL else []


PLAIN = {"Q": (40.0, 8.0, 1.0)}


@pytest.mark.parametrize(
    ("table", "verdict", "because"),
    [
        ({}, "open", "not been trained both ways"),
        (PLAIN, "open", "not been trained both ways"),
        (
            PLAIN | {"REM": (30.0, 5.0, 2.0)},
            "confirmed",
            "40.0 capsules without, 30.0 with REM; 1.0 and 2.0 %",
        ),
        (PLAIN | {"REM": (40.0, 5.0, 0.0)}, "not confirmed", "40.0 with REM"),
        (PLAIN | {"REM": (30.0, 0.9, 2.0)}, "open", "too little is decided"),
        (PLAIN | {"REM": (30.0, 5.0, 51.0)}, "open", "51.0 % of the trees are the class alone"),
        ({"Q": (40.0, 0.0, 1.0), "REM": (30.0, 5.0, 1.0)}, "open", "too little is decided"),
    ],
)
def test_fewer_capsules(table, verdict, because):
    found = fewer_capsules(rows_of(table))
    assert found.verdict == verdict
    assert because in found.because
    for changes in ({"seeds": 1}, {"spread": 90.0}):
        assert fewer_capsules(rows_of(table, **changes)).verdict == "open"


def test_both_networks_are_trained_alike_but_for_the_pruning():
    experiment = EXPERIMENTS[LABEL]
    assert LABELS[LABEL] == experiment.chapter
    for budget, epochs, decay, strength in (("full", 1000, 0.99, 1e-4), ("quick", 60, 0.95, 5e-4)):
        plain, rem = (run.recipe for run in experiment.planned(budget, seeds=1))
        assert plain.pruning is None
        assert rem.pruning == Lobster(strength=strength, decay=decay)
        for recipe in (plain, rem):
            assert (recipe.epochs, recipe.optim.decay) == (epochs, decay)
            assert recipe.patience == (200 if budget == "full" else 0)
            assert recipe.model["name"] == "parse_capsnet"
            assert recipe.data.name == "cifar10"
