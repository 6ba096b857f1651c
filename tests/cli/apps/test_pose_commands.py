"""Render, train, evaluate and predict, as a user would."""

import json
import shutil

import pytest
import torch
from PIL import Image

from torchcaps import viz
from torchcaps.cli.train import summary
from torchcaps.core import UserError, rotation_angle
from torchcaps.data.rendering import load_meshes, save_meshes
from torchcaps.train.recipe import read_recipe

from command import completed, torchcaps

SCENE = """
resolution: [32, 32]
rotations: {kind: random, count: 40}
"""
TINY = (
    "model={name: em_posenet_tiny_test, image_size: 16, num_classes: 2}",
    "epochs=1",
    "batch_size=8",
    "data.validation=0.3",
)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pose")
    (folder / "scene.yaml").write_text(SCENE, encoding="utf-8")
    out = folder / "rendered"
    told = json.loads(
        torchcaps("pose", "render", folder / "scene.yaml", "--out", out, "--engine", "torch", "--json")
    )
    assert told == {"folder": str(out), "images": 80, "rendered": 80}
    return out


@pytest.fixture(scope="module")
def run(rendered, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    sets = [part for each in TINY for part in ("--set", each)]
    torchcaps(
        "pose",
        "train",
        "pose/em_posenet_markley",
        *sets,
        "--data",
        rendered,
        "--out",
        out,
        "--device",
        "cpu",
        "-q",
    )
    assert (out / "calibration.json").is_file()
    return out


def test_eval_says_whether_the_uncertainty_holds(run):
    found = json.loads(torchcaps("pose", "eval", run, "--device", "cpu", "--json"))
    assert 0 <= found["covered"] <= 1
    assert 0 <= found["rotation_error"] <= 180
    assert "of the images" in torchcaps("pose", "eval", run, "--device", "cpu")


@pytest.mark.parametrize(
    ("symmetries", "is_shown"), [([], False), (["none", "none"], False), (["cube", "none"], True)]
)
def test_an_error_up_to_symmetry_is_shown_where_a_class_has_one(
    run, rendered, tmp_path, symmetries, is_shown
):
    copy = shutil.copytree(run, tmp_path / "copy")
    recipe = json.loads((copy / "recipe.json").read_text())
    recipe["loss"]["symmetries"] = symmetries
    (copy / "recipe.json").write_text(json.dumps(recipe))
    printed = torchcaps("pose", "eval", copy, "--device", "cpu")
    assert "median rotation error" in printed
    assert ("up to symmetry" in printed) == is_shown
    assert ("stated for 90%, up to symmetry: " in printed) == is_shown
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    assert (
        "° off up to symmetry, " in torchcaps("pose", "predict", copy, image, "--device", "cpu")
    ) == is_shown
    told = summary(json.loads((copy / "result.json").read_text()), read_recipe(copy), copy)
    assert ("up to symmetry" in told) == is_shown


def test_predict_gives_class_rotation_and_uncertainty_and_draws_the_object(run, rendered, tmp_path):
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    (row,) = json.loads(
        torchcaps("pose", "predict", run, image, "--out", tmp_path, "--device", "cpu", "--json")
    )
    assert row["class"] in ("cube", "tetrahedron")
    assert sum(value**2 for value in row["rotation"]) == pytest.approx(1, abs=1e-3)
    assert len(row["euler"]) == 3
    assert row["uncertainty"]["median"] <= row["uncertainty"]["within"]
    assert row["truth"] is None
    with Image.open(row["files"][0]) as picture:
        assert picture.size[0] > 2 * 256
    words = torchcaps("pose", "predict", run, image, "--device", "cpu")
    assert "Euler angles" in words
    assert "within" in words


def test_the_error_of_an_image_of_the_run_is_told_and_drawn(run, tmp_path, monkeypatch):
    drawn = []
    draw = viz.draw_side_by_side
    monkeypatch.setattr(viz, "draw_side_by_side", lambda *a, **k: drawn.append(k) or draw(*a, **k))
    numbers = [f"test:{number}" for number in range(6)]
    rows = json.loads(
        torchcaps("pose", "predict", run, *numbers, "--out", tmp_path, "--device", "cpu", "--json")
    )
    for name, row, labels in zip(numbers, rows, drawn, strict=True):
        truth = row["truth"]
        off = rotation_angle(torch.tensor(row["rotation"]), torch.tensor(truth["rotation"]))
        assert truth["error"] == pytest.approx(float(off), abs=0.1)
        is_right = row["class"] == truth["class"]
        told = f"error {truth['error']:.1f}°" if is_right else f"wrong class: it is {truth['class']}"
        assert labels["titles"] == ["image", "estimated"]
        left, right = labels["captions"]
        assert (left[0], left[1]) == (name, f"in truth: {truth['class']}")
        assert (right[0], right[-1]) == (row["class"], told)
        assert told in torchcaps("pose", "predict", run, name, "--device", "cpu")


def test_predict_says_why_it_draws_nothing(run, rendered, tmp_path):
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    (rendered / "meshes.npz").rename(tmp_path / "meshes.npz")
    try:
        found = completed("pose", "predict", run, image, "--out", tmp_path / "pictures", "--device", "cpu")
    finally:
        (tmp_path / "meshes.npz").rename(rendered / "meshes.npz")
    assert found.returncode == 0
    assert "no pictures: the objects of the run are not found here; give --meshes" in found.stderr


def test_a_recipe_given_as_an_option_is_answered_with_its_place():
    found = completed("pose", "train", "--recipe", "pose/pose_mlp")
    assert found.returncode == 2
    assert "A recipe is an argument, without an option" in " ".join(found.stderr.split())


def test_an_image_of_the_data_is_predicted_by_its_number(run, tmp_path):
    arguments = ("test:3", "--out", tmp_path, "--device", "cpu", "--json")
    (row,) = json.loads(torchcaps("pose", "predict", run, *arguments))
    assert row["files"] == [str(tmp_path / "test-3-pose.png")]
    (plain,) = json.loads(torchcaps("predict", run, "test:3", "--device", "cpu", "--json"))
    assert row["rotation"] == pytest.approx(plain["rotation"], abs=1e-5)


def test_an_image_of_another_size_is_fitted(run, tmp_path):
    Image.linear_gradient("L").resize((50, 70)).save(tmp_path / "tall.png")
    assert "Euler" in torchcaps("pose", "predict", run, tmp_path / "tall.png", "--device", "cpu")


@pytest.mark.parametrize("colour", ["black", "red"])
def test_an_image_of_one_colour_is_refused(colour, run, tmp_path):
    Image.new("RGB", (32, 32), colour).save(tmp_path / "plain.png")
    with pytest.raises(UserError, match=r"plain\.png has one colour alone: it shows no object"):
        torchcaps("pose", "predict", run, tmp_path / "plain.png", "--device", "cpu")


def test_few_validation_images_state_no_angle(run, rendered, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    known = json.loads((copy / "calibration.json").read_text())
    (copy / "calibration.json").write_text(json.dumps({**known, "images": 7}))
    assert "of the images" not in torchcaps("pose", "eval", copy, "--device", "cpu")
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    assert "within" not in torchcaps("pose", "predict", copy, image, "--device", "cpu")


def test_meshes_with_the_classes_in_another_order_are_drawn(run, rendered, tmp_path):
    image, meshes = sorted((rendered / "images/cube").rglob("*.png"))[0], tmp_path / "meshes.npz"
    save_meshes(meshes, load_meshes(rendered / "meshes.npz").in_order(("tetrahedron", "cube")))
    drawn = []
    for name, arguments in {"own": (), "turned": ("--meshes", meshes)}.items():
        torchcaps("pose", "predict", run, image, "--out", tmp_path / name, *arguments, "--device", "cpu")
        drawn += [path.read_bytes() for path in (tmp_path / name).iterdir()]
    assert drawn[0] == drawn[1]


def test_meshes_alone_can_be_written(tmp_path):
    assert "objects 2" in torchcaps("pose", "render", "--out", tmp_path, "--meshes-only")
    assert (tmp_path / "meshes.npz").is_file()
    assert not (tmp_path / "images").exists()


def test_a_run_without_calibration_says_how_to_get_one(run, rendered):
    (run / "calibration.json").rename(run / "aside.json")
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    with pytest.raises(UserError, match="torchcaps pose eval"):
        torchcaps("pose", "predict", run, image, "--device", "cpu")
    (run / "aside.json").rename(run / "calibration.json")


def test_weights_of_another_epoch_are_calibrated_anew(run, rendered):
    path = run / "calibration.json"
    known = path.read_text(encoding="utf-8")
    path.write_text(
        json.dumps({**json.loads(known), "epoch": 7, "median": [0.0], "within": [0.0], "edges": []})
    )
    image = sorted((rendered / "images/cube").rglob("*.png"))[0]
    with pytest.raises(UserError, match="is not calibrated; torchcaps pose eval"):
        torchcaps("pose", "predict", run, image, "--device", "cpu")
    torchcaps("pose", "eval", run, "--device", "cpu")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(known)


def test_an_unknown_engine_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(UserError, match="known: auto, blender, opengl, torch"):
        torchcaps("pose", "render", "--out", tmp_path, "--engine", "povray")
