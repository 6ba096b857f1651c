"""Options that several commands share."""

import os

import pytest
import torch
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.cli.terminal import choose_device, writable
from torchcaps.core import UserError
from torchcaps.train import Machine, device_of


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A folder in which nothing may be written, not even by root, as whom tests may run."""
    folder = tmp_path / "locked"
    folder.mkdir()
    allows = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and allows(path, mode))
    return folder


@pytest.mark.parametrize("below", ["", "new", "new/result.json"])
def test_a_place_where_nothing_may_be_written_is_named(locked, below):
    with pytest.raises(UserError, match=f"nothing may be written to {locked}; choose another"):
        writable(locked / below)


def test_other_places_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for name in ("new", "file", "new/deep"):
        assert writable(type(tmp_path)(name)) == type(tmp_path)(name)
    assert writable(None) is None


@pytest.mark.parametrize(
    "command",
    [
        "data draw OUT",
        "lung phantom OUT",
        "lung segment . --run . --out OUT",
        "uav abbrief map.tif --out OUT",
        "uav building-ratio map.tif --out OUT",
        "uav compile-map map.tif --run . --out OUT/map.tcmap",
        "uav simulate map.tif --run . --out OUT",
        "uav stack map.tif --out OUT/maps.npz",
        "uav terrain OUT",
    ],
)
def test_nothing_is_drawn_or_read_for_a_locked_folder(locked, command):
    answer = CliRunner().invoke(app, command.replace("OUT", str(locked)).split())
    assert "nothing may be written" in str(answer.exception)


def test_nothing_is_written_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is a file, nothing can be written below it"):
        writable(tmp_path / "file" / "new" / "page.html")


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "RUN", "test:0"],
        ["shrink", "RUN"],
        ["export", "RUN"],
        ["eval", "RUN", "--suite", "affine", "--figure", "RUN/figure.png"],
    ],
)
def test_a_run_is_not_even_loaded_for_a_locked_folder(locked, command):
    (locked / "recipe.json").write_text("{}")
    answer = CliRunner().invoke(app, [word.replace("RUN", str(locked)) for word in command])
    assert "nothing may be written" in str(answer.exception)


@pytest.mark.parametrize("found", ["cuda", "mps", "cpu"])
def test_auto_takes_the_device_that_a_training_takes(found, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found == "cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: found == "mps")
    assert choose_device("auto") == device_of(Machine()).type == found
    assert choose_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError, match="no MPS device"):
        choose_device("mps")
