import json

import pytest
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.train import load_run

RECIPE = """
model: {name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10, decoder: none}
data: {name: synthetic_mnist, limit: 80, validation: 0.25}
batch_size: 16
epochs: 1
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE)
    return path


def call(*arguments):
    return CliRunner().invoke(app, ["rem", *map(str, arguments)])


def test_a_recipe_is_trained_with_rem_and_stands_beside_a_run(recipe, tmp_path):
    options = "--out", tmp_path / "runs", "--device", "cpu", "--levels", 6
    first = call(recipe, *options, "--set", "pruning.strength=0.01", "--json")
    assert first.exit_code == 0, first.output
    (row,) = json.loads(first.stdout)
    assert row["pruned"]
    assert 0 <= row["sparsity"] <= 1
    assert row["keys"] <= row["images"]
    assert row["run"] == str(tmp_path / "runs" / "small-rem")
    assert sum(of_class["images"] for of_class in row["classes"]) == row["images"]
    both = call(row["run"], row["run"], *options)
    assert sum("small-rem" in line and " bits " in line for line in both.stdout.splitlines()) == 2
    assert "parameters left" in both.stdout  # zeros are not counted


def test_a_recipe_is_fitted_to_the_images_of_the_user(recipe, tmp_path):
    write_twin("folder", tmp_path / "pets", 40)
    options = "--data", tmp_path / "pets", "--out", tmp_path / "runs", "--device", "cpu"
    done = call(recipe, *options, "--set", "data.validation=0.25", "--json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert row["run"] == str(tmp_path / "runs" / "pets-small-rem")
    assert [of_class["class"] for of_class in row["classes"]] == ["a", "b", "c"]
    assert row["pruned"]
    assert load_run(row["run"]).recipe.pruning.patience == 3  # cut once the loss no longer falls


def test_a_source_that_is_neither_is_one_short_line_about_both():
    result = call("nowhere")
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == (
        "nowhere holds no run (no recipe.json); unknown recipe 'nowhere'; "
        "`torchcaps list recipes` shows the names, and a file must end in .yaml"
    )
    assert "did you mean mnist/dr_capsnet" in str(call("mnist/dr_capsnets").exception)
    misspelt = call("mnist/dr_capsnet_rem", "--set", "epoch=3").exception
    assert str(misspelt) == "unknown key in recipe: 'epoch'; did you mean epochs, keep_epochs?"


def test_what_cannot_be_done_is_refused_before_anything_is_trained(recipe, tmp_path):
    runs = tmp_path / "runs"
    options = "--out", runs, "--device", "cpu"
    other = tmp_path / "small_rem.yaml"
    other.write_text(RECIPE)
    for arguments, message in (
        ((recipe, "--levels", "many"), "--levels takes whole numbers"),
        ((recipe, "--levels", "1"), "levels must lie in"),
        ((recipe, "--levels", "11,6,3"), "got levels for 3"),
        ((recipe, other), "several of these recipes would be trained in"),
    ):
        error = call(*arguments, *options).exception
        assert isinstance(error, UserError), arguments
        assert message in str(error)
    assert not runs.exists()


def test_of_several_the_one_whose_couplings_cannot_be_quantized_is_named(recipe, tmp_path):
    slots = tmp_path / "slots.yaml"
    slots.write_text(RECIPE.replace("decoder: none", "decoder: none, routing: slot_attention"))
    error = call(recipe, slots, "--out", tmp_path / "runs", "--device", "cpu").exception
    assert isinstance(error, UserError)
    assert str(error).startswith(f"{slots}: layer 'classes' routes by SlotAttentionRouting")


def test_runs_are_not_changed_by_set(recipe, tmp_path):
    assert call(recipe, "--out", tmp_path, "--device", "cpu").exit_code == 0
    error = call(tmp_path / "small-rem", "--set", "epochs=2", "--device", "cpu").exception
    assert isinstance(error, UserError)
    assert "these are runs" in str(error)
    assert "these are runs" in str(call(tmp_path / "small-rem", "--data", "mnist").exception)


def test_sparsity_is_that_of_the_layers_that_were_pruned(recipe, tmp_path):
    pruned = "--set", "pruning.strength=0.01", "--set", "pruning.layers=classes"
    done = call(recipe, "--out", tmp_path, "--device", "cpu", "--json", *pruned)
    (row,) = json.loads(done.stdout)
    result = json.loads((tmp_path / "small-rem" / "result.json").read_text())
    assert row["sparsity"] == result["metrics"]["sparsity"]


def test_the_fewest_levels_that_will_do_can_be_asked_for(recipe, tmp_path):
    done = call(recipe, "--out", tmp_path, "--device", "cpu", "--json", "--levels", "auto")
    assert done.exit_code == 0, done.output
    assert "small-rem: " in done.stderr
    assert " levels, " in done.stderr
