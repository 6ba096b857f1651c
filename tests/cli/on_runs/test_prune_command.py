"""`torchcaps prune` as a person would use it, within this process."""

import json
import shlex

import pytest

from torchcaps.core import UserError

from command import torchcaps

RECIPE = """
model: {name: trunk_classifier_tiny_test, image_size: 28, num_classes: 10}
data: {name: synthetic_mnist, limit: 60, validation: 0.3}
loss: {name: cross_entropy}
batch_size: 16
epochs: 1
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prune") / "my runs"
    folder.mkdir()
    (folder / "small.yaml").write_text(RECIPE)
    torchcaps("train", folder / "small.yaml", "--device", "cpu", "--out", folder / "run", "--json")
    return folder / "run"


def prune(run, *options):
    return torchcaps("prune", run, "--device", "cpu", "--candidates", 3, "--batches", 2, *options)


def test_the_pruned_run_lies_beside_and_the_next_command_is_named(run):
    said = prune(run, "--flops", 0.6)
    folder = run.with_name("run-eagleeye-0.6")
    assert "(60." in said or "(59." in said
    result = json.loads((folder / "result.json").read_text())
    macs, metrics = result["macs"], result["metrics"]
    assert f"{macs['after']:,} of {macs['before']:,} multiply-adds" in said
    assert f"test accuracy {metrics['test_accuracy']:.2%} before fine-tuning, the best of 3;" in said
    named = shlex.split(said.partition("fine-tune it with: torchcaps ")[2])
    assert named == ["train", str(folder / "recipe.yaml"), "--out", f"{folder}-tuned"]
    tuned = torchcaps(*named, "--device", "cpu", "--json")
    assert json.loads(tuned)["recipe"]["start_from"] == str(folder)


def test_the_pruned_run_lies_beside_a_run_that_is_named_by_a_dot(run, monkeypatch):
    monkeypatch.chdir(run)
    prune(".", "--method", "random", "--quiet")
    assert (run.with_name("run-random-0.5") / "result.json").is_file()


def test_json_is_the_result_file(run, tmp_path):
    said = prune(run, "--method", "l1", "--out", tmp_path, "--json")
    assert json.loads(said) == json.loads((tmp_path / "result.json").read_text())


def test_mistakes_are_one_line_for_the_user(run, tmp_path):
    with pytest.raises(UserError, match="cannot be reached"):
        prune(run, "--flops", 0.001, "--out", tmp_path / "a")
    with pytest.raises(UserError, match="holds no trained run"):
        prune(tmp_path / "none")
