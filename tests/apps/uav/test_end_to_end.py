"""The commands in their order, from maps to a trajectory."""

import csv
import json

import pytest
from typer.testing import CliRunner

from torchcaps.cli.main import app

pytestmark = pytest.mark.slow


def run(*words):
    result = CliRunner().invoke(app, ["uav", *map(str, words)])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    pytest.importorskip("rasterio")
    pytest.importorskip("numba")
    folder = tmp_path_factory.mktemp("flights")
    run("terrain", folder / "maps", "--width", 2400, "--height", 900, "--metres-per-pixel", 10, "--seed", 4)
    return folder


def localized(folder, name, seen, cell=30):
    """Compile the map of summer with a descriptor and localize a flight in another season."""
    options = ("--run", folder / name, "--out")
    compiled, flight = folder / f"{name}.tcmap", folder / f"{name}-flight"
    summer, other = (folder / "maps" / f"{season}.tif" for season in ("summer", seen))
    run("compile-map", summer, *options, compiled, "--cell", cell, "--headings", 18, "--quiet")
    run("simulate", other, *options, flight, "--updates", 50, "--seed", 1)
    files = (flight / "flight.csv", flight / "images")
    return json.loads(run("localize", compiled, *files, *options, folder / "found", "--json"))


@pytest.fixture(scope="module")
def handmade(maps):
    """A flight that a descriptor without training found; its map and log stay in the folder."""
    run("abbrief", maps / "maps", "--out", maps / "abbrief", "--side", 20, "--bits", 64)
    return localized(maps, "abbrief", "summer")


def test_a_handmade_descriptor_finds_a_flight_in_the_season_of_its_map(handmade):
    found = handmade
    assert found["converged"]
    assert found["final_error_m"] < 60
    assert found["mean_error_after_convergence_m"] < 60


def test_a_trained_descriptor_finds_a_flight_in_another_season_over_ground_it_never_saw(maps):
    learnt = maps / "learnt"
    run("terrain", learnt, "--width", 2400, "--height", 1200, "--metres-per-pixel", 10, "--seed", 5)
    network = ("model.trunk=resnet_tiny", "model.trunk_widths=[12,8,8,32,16,16,64]", "model.hidden=64")
    crops = ("model.image_size=24", "data.preprocess.resize=24", "data.augment.motion_blur=2")
    learning = ("epochs=6", "optim.learning_rate=2e-3", "select_by=recall_at_1")
    changes = [word for change in (*network, *crops, *learning) for word in ("--set", change)]
    words = ("--recipe", "retrieval/uav_fcn", "--places", 150, "--views", 8, "--offset", 20)
    run("train", learnt, "--out", maps / "run", *words, *changes, "--quiet", "--device", "cpu")
    found = localized(maps, "run", "autumn")
    assert found["converged"]
    assert found["mean_error_after_convergence_m"] < 60
    assert found["updates_with_problems"] == 0


@pytest.mark.usefixtures("handmade")
def test_odometry_alone_does_not_find_a_flight(maps):
    flight = maps / "abbrief-flight"
    files = (maps / "abbrief.tcmap", flight / "flight.csv", flight / "images")
    options = ("--run", maps / "abbrief", "--out", maps / "blind", "--odometry-only", "--json")
    assert not json.loads(run("localize", *files, *options))["converged"]


@pytest.mark.usefixtures("handmade")
def test_a_log_without_odometry_does_not_fly(maps):
    log, images = maps / "still.csv", maps / "abbrief-flight" / "images"
    log.write_text("time,forward,left,turn,image\n0,0,0,0,0000.png\n1,,,,0001.png\n")
    words = ("localize", maps / "abbrief.tcmap", log, images, "--run", maps / "abbrief", "--out", maps / "o")
    result = CliRunner().invoke(app, ["uav", *map(str, words)])
    assert "still.csv after the first has a motion" in str(result.exception)
    assert not (maps / "o").exists()


@pytest.mark.usefixtures("handmade")
def test_an_oblique_camera_is_rectified_and_followed_line_by_line(maps):
    pytest.importorskip("cv2")
    options = ("--run", maps / "abbrief")
    camera = ("--altitude", 220, "--tilt", 20, "--updates", 3)
    run("simulate", maps / "maps" / "summer.tif", *options, "--out", maps / "oblique", *camera)
    with (maps / "oblique" / "flight.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["ahead"]) > 0 for row in rows)
    lines = "".join(json.dumps(row) + "\n" for row in rows) + "no JSON\n"
    words = ["uav", "stream", maps / "abbrief.tcmap", *options, "--images", maps / "oblique" / "images"]
    result = CliRunner().invoke(app, list(map(str, words)), input=lines)
    assert result.exit_code == 0, result.output
    *answers, error = map(json.loads, result.stdout.splitlines())
    assert [answer["time"] for answer in answers] == [0, 1, 2]
    assert all(not answer["problems"] for answer in answers)
    assert "line 4" in error["error"]


def test_building_ratios_go_the_same_way(maps):
    run("building-ratio", maps / "maps", "--out", maps / "ratios", "--side", 20)
    assert localized(maps, "ratios", "summer", cell=60)["updates"] == 50
