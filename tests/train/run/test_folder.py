import json
import shutil

import pytest
import torch
from PIL import Image

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.train import Evaluation, Machine, load_run, train
from torchcaps.train.pruning import shrink_run
from torchcaps.train.recipe import recipe_as_json
from torchcaps.train.run import check_folder, check_outside_classes, held_alone

from small_runs import SHIFTED_DIGITS, assert_same_weights, small_recipe, timeless

CPU = Machine(device="cpu")


def recipe(epochs, **changes):
    optim = {"learning_rate": 1e-2, "decay": 0.8}
    return small_recipe(**{"data": SHIFTED_DIGITS, "optim": optim, "epochs": epochs, **changes})


@pytest.mark.parametrize(
    "technique",
    [
        {"loss": {"name": "spread"}, "keep_epochs": [1, 4], "patience": 3},
        {"optim": {"learning_rate": 1e-2, "decay": 0.5, "decay_steps": 4, "floor": 1e-3}},
        {"annealing": {"r_max": 3, "patience": 1}},
        {"pruning": {"strength": 1e-2, "decay": 0.5, "patience": 2}},
    ],
    ids=["margin that grows", "rate by steps", "annealing", "pruning"],
)
def test_a_run_that_gets_more_epochs_ends_as_if_started_with_them(technique, tmp_path):
    longer, whole = tmp_path / "longer", tmp_path / "whole"
    train(recipe(2, **technique), longer, CPU)
    result = train(recipe(5, **technique), longer, CPU, resume=True)
    assert result["metrics"] == train(recipe(5, **technique), whole, CPU)["metrics"]
    assert json.loads((longer / "result.json").read_text()) == result
    assert load_run(longer).recipe.epochs == 5
    assert timeless(longer) == timeless(whole)
    names = sorted(path.name for path in whole.glob("*.safetensors"))
    assert names == sorted(path.name for path in longer.glob("*.safetensors"))
    for name in names:
        assert_same_weights(longer / name, whole / name)


def test_a_run_that_lost_patience_stays_over_when_it_gets_more_epochs(tmp_path):
    still = {"optim": {"learning_rate": 1e-30}, "patience": 1}
    first = train(recipe(4, **still), tmp_path, CPU)
    again = train(recipe(9, **still), tmp_path, CPU, resume=True)
    assert again["metrics"] == first["metrics"]
    assert again["recipe"]["epochs"] == 9


def test_fewer_epochs_are_another_run(tmp_path):
    train(recipe(2), tmp_path, CPU)
    with pytest.raises(UserError, match=r"\(changed: epochs\).*with that one, or with more epochs"):
        train(recipe(1), tmp_path, CPU, resume=True)


def test_two_trainings_do_not_share_a_folder(tmp_path):
    out = tmp_path / "run"
    with held_alone(out), pytest.raises(UserError, match="another training is under way"):
        train(recipe(1), out, CPU)
    assert not out.exists()  # nothing came of either
    train(recipe(1), out, CPU)
    assert not (out / "running.lock").exists()


def test_a_lock_that_its_holder_just_removed_is_not_taken(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="Windows has no such locks")
    lock = fcntl.flock

    def late(file, kind):  # the holder ends, and another one begins, between opening and locking
        (tmp_path / "running.lock").unlink()
        (tmp_path / "running.lock").touch()
        lock(file, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(UserError, match="another training is under way"), held_alone(tmp_path):
        pass
    assert (tmp_path / "running.lock").exists()  # that of the other


def test_a_test_image_that_cannot_be_read_is_told_before_the_training(tmp_path):
    images, out = tmp_path / "images", tmp_path / "run"
    write_twin("folder", images, 40)
    next((images / "test").rglob("*.png")).write_bytes(b"")
    data = {"name": f"folder:{images}", "validation": 0.2}
    model = {"name": "dr_capsnet_tiny_test", "in_channels": 3, "image_size": 32, "num_classes": 3}
    with pytest.raises(UserError, match=r"test.*\.png"):
        train(recipe(1, data=data, model={**model, "decoder": "none"}), out, CPU)
    assert not out.exists()


@pytest.mark.parametrize(("inside", "is_refused"), [("train/run", True), ("test", True), ("runs/one", False)])
def test_a_run_does_not_lie_among_the_classes_it_learns(inside, is_refused, tmp_path):
    write_twin("folder", tmp_path, 40)
    before = sorted(tmp_path.rglob("*"))
    tested = recipe(1, data={"name": f"folder:{tmp_path}"})
    if is_refused:
        with pytest.raises(UserError, match="lies among the classes of"):
            train(tested, tmp_path / inside, CPU)
    else:
        check_outside_classes(tested, tmp_path / inside, None)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["recipe.yaml", "data.json", "photo.JPG"])
def test_files_of_the_user_in_the_folder_of_a_run_are_kept(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=rf"{name}.*choose another --out"):
        train(recipe(1, optim={"learning_rate": 1e30}), tmp_path, CPU)  # what diverges is removed again
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}


def learning_from(folder):
    """What a recipe changes to learn the three classes of a folder."""
    model = {"name": "dr_capsnet_tiny_test", "in_channels": 3, "image_size": 20, "num_classes": 3}
    return {
        "data": {"name": f"folder:{folder}", "validation": 0.2},
        "model": {**model, "decoder": "none"},
    }


def test_in_a_folder_of_classes_alone_there_is_no_place_for_a_run(tmp_path):
    write_twin("folder", tmp_path, 40)
    tested = recipe(1, data={"name": f"folder:{tmp_path / 'train'}"})
    with pytest.raises(UserError, match="lies among the classes of"):
        train(tested, tmp_path / "train" / "runs" / "one", CPU)


def test_a_run_is_not_continued_on_other_classes(tmp_path):
    images, out = tmp_path / "images", tmp_path / "run"
    write_twin("folder", images, 40)
    changes = learning_from(images)
    train(recipe(1, **changes), out, CPU)
    for split in ("train", "test"):
        (images / split / "a").rename(images / split / "z")  # the others move up
    kept = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(UserError, match=r"was trained on the classes a, b, c; the dataset now has b, c, z"):
        train(recipe(2, **changes), out, CPU, resume=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept
    for split in ("train", "test"):
        (images / split / "z").rename(images / split / "a")
    assert train(recipe(2, **changes), out, CPU, resume=True)["metrics"]["epochs"] == 2


def test_a_run_goes_on_after_its_folder_of_images_moved_but_not_on_other_images(tmp_path):
    images, out = tmp_path / "images", tmp_path / "run"
    write_twin("folder", images, 40)
    train(recipe(1, **learning_from(images)), out, CPU)
    copied = shutil.copytree(images, tmp_path / "copied")
    with pytest.raises(UserError, match=r"\(changed: data\), and can only be continued with that one, or"):
        train(recipe(1, **learning_from(copied)), out, CPU, resume=True)  # its own images are still there
    moved = images.rename(tmp_path / "elsewhere")
    assert train(recipe(2, **learning_from(moved)), out, CPU, resume=True)["metrics"]["epochs"] == 2
    assert load_run(out).recipe.data.name == f"folder:{moved}"
    for path in copied.rglob("*.png"):
        Image.new("RGB", (20, 20), "white").save(path)
    shutil.rmtree(moved)
    with pytest.raises(UserError, match="was trained on other images"):
        train(recipe(3, **learning_from(copied)), out, CPU, resume=True)


def test_a_run_is_not_continued_after_two_class_folders_were_swapped(tmp_path):
    images, out = tmp_path / "images", tmp_path / "run"
    write_twin("folder", images, 40)
    changes = learning_from(images)

    one, other = (images / "train" / name for name in "bc")
    for path, file in zip(sorted(one.iterdir()), sorted(other.iterdir()), strict=True):
        file.rename(other / path.name)

    def swap():
        one.rename(tmp_path / "aside")
        other.rename(one)
        (tmp_path / "aside").rename(other)

    train(recipe(1, **changes), out, CPU)
    swap()
    with pytest.raises(UserError, match=r"trained on other images: .* or their classes, have changed"):
        train(recipe(2, **changes), out, CPU, resume=True)
    swap()
    assert train(recipe(2, **changes), out, CPU, resume=True)["metrics"]["epochs"] == 2


@pytest.mark.parametrize("content", [[1], {"model": {}}])
def test_a_checkpoint_with_other_content_is_named(content, tmp_path):
    train(recipe(1), tmp_path, CPU)
    torch.save(content, tmp_path / "last.ckpt")
    with pytest.raises(UserError, match=r"last\.ckpt is not the checkpoint of a run"):
        train(recipe(2), tmp_path, CPU, resume=True)


def test_a_cosine_schedule_is_the_reason_why_a_run_gets_no_more_epochs(tmp_path):
    ahead = {"optim": {"learning_rate": 1e-2, "schedule": "cosine"}}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_as_json(recipe(1, **ahead))))
    (tmp_path / "last.ckpt").touch()
    with pytest.raises(UserError, match="a cosine schedule knows its last epoch"):
        check_folder(recipe(2, **ahead), tmp_path, resume=True)
    with pytest.raises(UserError, match=r"changed: batch_size\), .* with that one;"):
        check_folder(recipe(1, batch_size=4, **ahead), tmp_path, resume=True)


@pytest.mark.parametrize("other", [recipe(2), recipe(1, batch_size=8)], ids=["more epochs", "another batch"])
def test_a_finished_run_without_checkpoint_does_not_pass_for_that_of_another_recipe(other, tmp_path):
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_as_json(recipe(1))))
    (tmp_path / "result.json").write_text("{}")
    check_folder(recipe(1), tmp_path, resume=True)
    with pytest.raises(UserError, match=r"no last.ckpt to continue from; .*delete result.json"):
        check_folder(other, tmp_path, resume=True)


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory):
    """A run that was not trained: what is left of another, without a checkpoint."""
    folder = tmp_path_factory.mktemp("runs")
    train(recipe(1), folder / "whole", CPU)
    shrink_run(load_run(folder / "whole"), folder / "shrunk")
    return folder / "shrunk"


def test_a_network_without_checkpoint_is_not_overwritten_by_another_recipe(shrunk):
    kept = {path.name: path.read_bytes() for path in shrunk.iterdir()}
    with pytest.raises(UserError, match=r"no last.ckpt to continue from; .*delete weights.safetensors"):
        train(recipe(1, batch_size=8), shrunk, CPU, resume=True)
    assert {path.name: path.read_bytes() for path in shrunk.iterdir()} == kept


def test_a_training_that_fails_at_once_leaves_the_network_that_it_would_have_begun_with(shrunk, monkeypatch):
    broken = Evaluation(float("nan"), {"accuracy": 0.1})
    monkeypatch.setattr("torchcaps.train.loop.session.evaluate", lambda *_, **__: broken)
    with pytest.raises(UserError, match="not finite"):
        train(load_run(shrunk).recipe, shrunk, CPU, resume=True)
    assert load_run(shrunk).card is not None


@pytest.mark.parametrize("resume", [True, False])
def test_a_pruned_run_is_not_trained_in_its_own_folder(resume, tmp_path):
    (tmp_path / "recipe.json").write_text(json.dumps(recipe_as_json(recipe(1))))
    for name in ("pruning.json", "result.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="holds the network that a search has pruned; choose another --out"):
        train(recipe(1), tmp_path, CPU, resume=resume)
