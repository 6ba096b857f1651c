"""Blender gets a job and its pictures are read; where it is installed, it draws what the others draw."""

import os
import stat
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.apps.pose.blender import PYTHON_VARIABLE, BlenderEngine, _read
from torchcaps.apps.pose.render import choose_engine
from torchcaps.core import UserError
from torchcaps.core.rotation import random_rotations
from torchcaps.data.rendering import View, cube, rasterise


def test_where_blender_is_missing_the_message_says_what_to_do(monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="Blender is missing: make an environment"):
        choose_engine("blender")


FAKE = """#!{python}
import json, sys
from pathlib import Path
from PIL import Image
folder = Path(sys.argv[-1])
job = json.loads((folder / "job.json").read_text())
assert (folder / "mesh.npz").is_file() and Path(sys.argv[1]).name == "blender_script.py"
for number, rotation in enumerate(job["rotations"]):
    size = job["view"]["width"], job["view"]["height"]
    Image.new("RGBA", size, (200, 100, 50, 255 * (number % 2))).save(folder / f"{{number}}.png")
"""


def test_blender_is_handed_a_job_and_its_pictures_are_read(tmp_path):
    program = tmp_path / "python"
    program.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    view = View(height=8, width=10, background=(0.0, 0.0, 1.0))
    found = BlenderEngine(program)(cube(), torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]]), view)
    assert found.images[:, :, 0, 0].tolist() == [[0, 0, 255], [200, 100, 50]]
    assert found.masks[:, 0, 0, 0].tolist() == [0, 255]


def test_pixels_that_an_object_covers_by_more_than_half_are_of_its_mask(tmp_path):
    """200 of 255 where it is, 51 behind it: a quarter and three quarters of 255, nearly."""
    pixels = np.array([[[200, 200, 200, 64], [200, 200, 200, 191]]], np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = _read(tmp_path / "a.png", View(height=1, width=2, background=(0.2, 0.2, 0.2)))
    assert found[:, 0].tolist() == [[88, 163]] * 3 + [[0, 255]]


def test_a_blender_that_fails_is_one_line(tmp_path):
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\nimport bpy_that_is_missing\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    still = torch.tensor([[1.0, 0, 0, 0]])
    with pytest.raises(UserError, match="Blender failed: ModuleNotFoundError"):
        BlenderEngine(program)(cube(), still, View(height=8, width=8))
    with pytest.raises(UserError, match="does not run"):
        BlenderEngine(tmp_path / "nowhere")(cube(), still, View(height=8, width=8))


def test_a_blender_that_does_not_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.apps.pose.blender._SECONDS_TO_START", 0)
    monkeypatch.setattr("torchcaps.apps.pose.blender._SECONDS_PER_IMAGE", 0.2)
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport threading\nthreading.Event().wait(60)\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(UserError, match=r"did not end within 0\.2 seconds"):
        BlenderEngine(program)(cube(), torch.tensor([[1.0, 0, 0, 0]]), View(height=8, width=8))


@pytest.mark.slow
@pytest.mark.skipif(PYTHON_VARIABLE not in os.environ, reason=f"{PYTHON_VARIABLE} names no Blender")
def test_blender_and_the_rasteriser_agree_on_silhouettes():
    rotations, view = random_rotations(2, torch.Generator().manual_seed(0)), View(height=64, width=64)
    theirs, ours = (draw(cube(), rotations, view).masks > 0 for draw in (BlenderEngine(), rasterise))
    overlaps = (ours & theirs).sum((1, 2, 3)) / (ours | theirs).sum((1, 2, 3))
    assert (overlaps > 0.97).all()
