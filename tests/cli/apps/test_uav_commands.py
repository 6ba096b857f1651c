"""The commands of maps say what their numbers do not cover."""

from contextlib import nullcontext

import pytest

from torchcaps.apps.uav import Terrain
from torchcaps.cli.apps import uav
from torchcaps.data import save_stack

from command import completed, torchcaps


@pytest.mark.parametrize(("seasons", "is_said"), [(("summer",), True), (("summer", "winter"), False)])
def test_a_single_date_is_said_to_tell_nothing_about_others(tmp_path, seasons, is_said):
    save_stack(tmp_path / "maps.npz", Terrain().draw(1500.0, 300.0, 10.0, seasons))
    words = "abbrief", tmp_path / "maps.npz", "--out", tmp_path / "run", "--side", 8, "--bits", 16
    done = completed("uav", *words)
    assert done.returncode == 0
    assert ("summer is the only date of its place" in done.stderr) == is_said


def test_compiling_a_map_says_how_much_of_it_is_unknown(tmp_path):
    summer = Terrain().draw(1500.0, 300.0, 10.0, ("summer",))
    summer.known[:, :, :75] = False
    save_stack(tmp_path / "whole.npz", Terrain().draw(1500.0, 300.0, 10.0))
    save_stack(tmp_path / "half.npz", summer)
    run = ["--run", tmp_path / "run", "--out", tmp_path / "a.tcmap", "--cell", 30, "--headings", 2]
    torchcaps("uav", "abbrief", tmp_path / "whole.npz", "--out", tmp_path / "run", "--side", 8, "--bits", 16)
    said = torchcaps("uav", "compile-map", tmp_path / "half.npz", *run, "--quiet")
    assert "50.0% of the map is unknown" in said


def test_drawing_and_reading_of_large_maps_do_not_seem_to_stand_still(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(uav, "working", lambda words: nullcontext(shown.append(words)))
    sides = ["--width", 200, "--height", 100, "--metres-per-pixel", 10]
    torchcaps("uav", "terrain", tmp_path / "maps", *sides)
    torchcaps("uav", "stack", tmp_path / "maps", "--out", tmp_path / "a.npz")
    assert shown == ["drawing", "reading maps"]
