"""The commands of maps say what their numbers do not cover."""

import pytest
from typer.testing import CliRunner

from torchcaps.apps.uav import Terrain
from torchcaps.cli.main import app
from torchcaps.data import save_stack


@pytest.mark.parametrize(("seasons", "is_said"), [(("summer",), True), (("summer", "winter"), False)])
def test_a_single_date_is_said_to_tell_nothing_about_others(tmp_path, seasons, is_said):
    save_stack(tmp_path / "maps.npz", Terrain().draw(1500.0, 300.0, 10.0, seasons))
    words = ["uav", "abbrief", tmp_path / "maps.npz", "--out", tmp_path / "run", "--side", 8, "--bits", 16]
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0
    assert ("summer is the only date of its place" in result.stderr) == is_said
