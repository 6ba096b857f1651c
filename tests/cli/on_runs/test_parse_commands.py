"""`torchcaps parse` and `torchcaps explain` on a run of the smallest kind."""

import json
from dataclasses import replace

import pytest
from PIL import Image
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.train import Machine, load_run, train
from torchcaps.train.predict import predictor_of
from torchcaps.zoo import predict

from small_runs import DIGITS, small_recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parse") / "run"
    recipe = small_recipe(data={**DIGITS, "limit": 100}, optim={}, epochs=1)
    train(recipe, folder, Machine(device="cpu"))
    return folder


def torchcaps(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--device", "cpu"])


def test_parse_trees_are_counted(run):
    done = torchcaps("parse", run, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["images"] == 128
    assert found["levels"] == 11
    assert 0 <= found["entropy"] <= 7
    assert sum(row["keys"] for row in found["classes"]) == found["keys"]


def test_parse_trees_are_shown_to_people(run):
    done = torchcaps("parse", run, "--split", "validation", "--limit", 7, "--levels", 6)
    assert done.exit_code == 0, done.output
    assert "synthetic_mnist validation: 7 images" in done.output
    assert "6 levels" in done.output
    assert "never predicted" in done.output
    alone = torchcaps("parse", run, "--limit", 1).output
    assert "test: 1 image, " in alone
    assert "; 1 parse tree\n" in alone


def test_a_run_that_hardly_needs_its_couplings_is_called_so(run):
    for command in ("parse", "rem"):
        assert "as accurate with even couplings: these trees do not say why" in torchcaps(command, run).output


def test_levels_that_round_an_even_share_up_are_named(run):
    words = "6 levels round the even share of 10 classes up, so that undecided children count as decided"
    for command in ("parse", "rem"):
        assert words in torchcaps(command, run, "--levels", 6).output
        assert "round the even share" not in torchcaps(command, run).output


def test_an_image_is_explained(run, tmp_path):
    done = torchcaps("explain", run, "test:5", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("test:5: ")
    typicality = json.loads((tmp_path / "test-5.json").read_text())["typicality"]
    assert f" of {typicality['compared_with']} validation images of its class" in done.output
    assert (tmp_path / "test-5.html").is_file()
    assert str(tmp_path / "test-5.html") in done.output.replace("\n", "")


@pytest.mark.parametrize("names", [["a.png", "test:5"], ["a.png", "nowhere.png"]])
def test_unreadable_images_are_passed_over_as_in_prediction(run, names, tmp_path):
    (tmp_path / "a.png").write_text("hello")
    names = [str(tmp_path / name) if name.endswith(".png") else name for name in names]
    done, predicted, page = (
        torchcaps(*command, "--json")
        for command in (
            ["explain", run, *names, "--out", tmp_path / "out"],
            ["predict", run, *names],
            ["explain", run, *names, "--out", tmp_path / "page", "--explorer"],
        )
    )
    readable = [name for name in names if name == "test:5"]
    assert done.exit_code == predicted.exit_code == page.exit_code == 1
    assert done.stderr == predicted.stderr == page.stderr
    missing = "2 of 2 images have" if not readable else "1 of 2 images has"
    assert f"{missing} no answer" in done.stderr
    assert [row["image"] for row in json.loads(done.stdout)] == readable
    assert (json.loads(page.stdout)["images"] if page.stdout else []) == readable
    written = [path.name for folder in ("out", "page") for path in (tmp_path / folder).glob("*.html")]
    assert written == (["test-5.html", "explorer.html"] if readable else [])


def test_an_image_of_the_data_is_predicted_as_it_is_explained(run, tmp_path):
    done = torchcaps("predict", run, "test:5", "train:0", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)
    assert [row["image"] for row in rows] == ["test:5", "train:0"]
    explained = torchcaps("explain", run, "test:5", "--out", tmp_path, "--json")
    (expected,) = json.loads(explained.output)
    assert rows[0]["activations"] == pytest.approx(expected["activations"], abs=2e-6)
    assert "preparation" not in rows[0]  # it is as the network learnt it, unlike a photograph of a digit


def test_a_file_of_that_name_is_a_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("L", (28, 28)).save("test:5", format="PNG")
    (own,) = predict(run, "test:5")
    (tmp_path / "test:5").rename("blank.png")
    assert own["activations"] == predict(run, "blank.png")[0]["activations"]
    assert own["activations"] != predict(run, "test:5")[0]["activations"]


def test_an_exported_file_has_no_images_of_its_own(run):
    predictor = replace(predictor_of(load_run(run)), own=None)
    with pytest.raises(UserError, match="give the folder of its run"):
        predict(predictor, "test:5")


def test_the_class_that_was_compared_with_is_named(run, tmp_path):
    done = torchcaps("explain", run, "test:5", "--levels", 2, "--out", tmp_path)
    row = json.loads((tmp_path / "test-5.json").read_text())
    assert row["class"] != row["quantized_class"]
    assert f"validation images read as {row['quantized_class']}, as it is itself" in done.output
    assert "of its class" not in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "--levels", "1"], "levels must lie in 2"),
        (["parse", "--levels", "eleven"], "whole numbers"),
        (["parse", "--levels", "11,6"], "1 routed layer"),
        (["parse", "--split", "tset"], "split must be"),
        (["parse", "--limit", "0"], "at least 1"),
        (["explain", "test:1000"], "0 to 127"),
        (["predict", "test:1000"], "0 to 127"),
        (["predict", "test:first"], "0 to 127"),
        (["predict", "tests:1"], "tests:1"),
        (["explain", "nowhere.png"], "no image at"),
    ],
)
def test_mistakes_are_answered(run, arguments, message):
    command, *rest = arguments
    done = torchcaps(command, run, *rest)
    assert isinstance(done.exception, UserError)
    assert message in str(done.exception)
