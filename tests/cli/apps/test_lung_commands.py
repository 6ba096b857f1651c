"""`torchcaps lung` as a user meets it."""

import json

import pytest

from torchcaps.core import MissingDataError, UserError

from command import torchcaps

SMALL = ["--set", "model.base_width=4", "--set", "epochs=1", "--set", "batch_size=2"]


@pytest.mark.slow
def test_phantom_prepare_and_train_follow_each_other(tmp_path):
    words = torchcaps(
        "lung", "phantom", tmp_path / "ct", "--patients", 3, "--seed", 22, "--size", 128, "--slices", 8, "-q"
    )
    assert "torchcaps lung prepare" in words
    found = json.loads(
        torchcaps("lung", "prepare", tmp_path / "ct", "--out", tmp_path / "prepared", "--json")
    )
    assert found["patients"] == 3
    assert not found["problems"]
    for more in (["--share", 0.5], ["--leave-out", "phantom-0001"]):
        run = tmp_path / f"run{more[0]}"
        trained = torchcaps(
            "lung", "train", tmp_path / "prepared", "--model", "unet_3", *more, *SMALL, "--out", run, "--json"
        )
        assert 0 <= json.loads(trained)["metrics"]["test_dice"] <= 1
        recipe = json.loads((run / "recipe.json").read_text())
        assert recipe["loss"]["positive_weight"] == 5
        assert recipe["data"]["name"].endswith("share-50" if more[0] == "--share" else "fold-phantom-0001")


def test_what_cannot_be_trained_on_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="is not prepared; make it with torchcaps lung prepare"):
        torchcaps("lung", "train", tmp_path)
    with pytest.raises(UserError, match="--share and --leave-out"):
        torchcaps("lung", "train", tmp_path, "--share", 0.5, "--leave-out", "phantom-0001")
    with pytest.raises(UserError, match="unknown"):
        torchcaps("train", "lung/unet_9")
    with pytest.raises(UserError, match="at least 64 pixels"):
        torchcaps("lung", "phantom", tmp_path, "--size", 8)
    (tmp_path / "ct").mkdir()
    with pytest.raises(UserError, match="whose folders are patients; choose an --out outside of it"):
        torchcaps("lung", "prepare", tmp_path / "ct", "--out", tmp_path / "ct" / "prepared")
    assert not list((tmp_path / "ct").iterdir())
