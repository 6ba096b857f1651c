"""Segmentation as a user meets it: train, eval, predict and export on a folder of images with masks."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from torchcaps.train import Machine, build, train

from command import torchcaps

pytestmark = pytest.mark.slow

RECIPE = {
    "model": {"name": "segcaps_tiny_test", "image_size": 32, "reconstruction": False},
    "data": {"name": "synthetic_masks", "limit": 100, "validation": 0.1},
    "loss": {"name": "dice_cross_entropy"},
    "optim": {"learning_rate": 1e-2, "schedule": "cosine", "clip": 1.0},
    "batch_size": 4,
    "epochs": 5,
    "select_by": "dice",
}


def pixels(path):
    with Image.open(path) as picture:
        return np.array(picture)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for folder in ("images", "masks"):
        (root / folder).mkdir()
    for number in range(20):
        image = rng.integers(0, 60, (30, 50, 3), dtype=np.uint8)
        mask = np.zeros((30, 50), dtype=np.uint8)
        row, column = rng.integers(2, 16), rng.integers(2, 30)
        mask[row : row + 10, column : column + 14] = 255
        image[mask > 0] += 150
        Image.fromarray(image).save(root / "images" / f"{number}.jpg", quality=95)
        Image.fromarray(mask).save(root / "masks" / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "mine"
    torchcaps(
        "train", "segmentation/unet_3", "--out", out, "--device", "cpu", "--set", f"data.name=folder:{data}",
        *("--set", "model={name: unet_tiny_test, in_channels: 3, image_size: [16, 24]}"),
        *("--set", "epochs=16", "--set", "batch_size=2", "--set", "optim.learning_rate=0.01"),
    )  # fmt: skip
    return out


def test_training_says_dice(run):
    result = json.loads((run / "result.json").read_text())
    assert result["metrics"]["test_dice"] > 0.5
    assert json.loads((run / "data.json").read_text())["task"] == "segmentation"


def test_a_run_is_evaluated_class_by_class(run):
    text = torchcaps("eval", run, "--device", "cpu")
    assert "Dice" in text
    assert "IoU" in text
    assert "object" in text
    found = json.loads(torchcaps("eval", run, "--device", "cpu", "--json"))
    assert found["classes"]["object"]["dice"] == pytest.approx(found["dice"])


def test_a_mask_and_an_overlay_have_the_size_of_the_photograph(run, data, tmp_path):
    image = data / "images" / "0.jpg"
    (row,) = json.loads(torchcaps("predict", run, image, "--out", tmp_path, "--json"))
    assert row["size"] == [30, 50]
    mask, overlay = (pixels(tmp_path / f"0-{name}.png") for name in ("mask", "overlay"))
    assert mask.shape == overlay.shape[:2] == (30, 50)
    assert set(np.unique(mask).tolist()) <= {0, 1}
    true, found = pixels(data / "masks" / "0.png") > 0, mask > 0
    assert 2 * (true & found).sum() / (true.sum() + found.sum()) > 0.4


def test_images_of_one_name_in_two_folders_do_not_share_a_mask(run, data, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        shutil.copy(data / "images" / "0.jpg", tmp_path / "in" / folder)
    rows = json.loads(torchcaps("predict", run, tmp_path / "in", "--out", tmp_path / "out", "--json"))
    written = [Path(file).name for row in rows for file in row["files"]]
    assert written == ["0-mask.png", "0-overlay.png", "0~2-mask.png", "0~2-overlay.png"]


def test_an_exported_file_answers_alike(run, data, tmp_path):
    pytest.importorskip("onnxruntime")
    torchcaps("export", run, "--out", tmp_path / "model.onnx")
    image = data / "images" / "1.jpg"
    answers = [
        json.loads(torchcaps("predict", source, image, "--json")) for source in (run, tmp_path / "model.onnx")
    ]
    assert answers[0][0]["share"]["object"] == pytest.approx(answers[1][0]["share"]["object"], abs=1e-3)


def test_segcaps_learns_the_drawn_shapes(tmp_path):
    assert train(build(RECIPE), tmp_path, Machine(device="cpu"))["metrics"]["test_dice"] >= 0.9
