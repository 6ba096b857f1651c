import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from torchcaps.apps.uav import (
    AbBrief,
    FlightPlan,
    FlightStep,
    Localizer,
    NoImage,
    Recorder,
    load_matching,
    open_map,
    read_flight,
    record_flight,
    simulate_flight,
    summarize,
    write_results,
)
from torchcaps.apps.uav.filter import (
    FilterSettings,
    Grid,
    Odometry,
    PlainBackend,
    bayesian_likelihood,
    linear_likelihood,
    ratio_likelihood,
)
from torchcaps.apps.uav.localize import read_image
from torchcaps.apps.uav.results import _fraction
from torchcaps.core import MissingDataError, UserError
from torchcaps.viz import draw_errors

from command import torchcaps

KML = "{http://www.opengis.net/kml/2.2}"
STEP = Odometry(20.0, 0.0, 0.0)
START = 1_700_000_000.25  # seconds of the clock of a machine


def started(country, describer=None, name="bayesian"):
    likelihood = country.matching.likelihood(name)
    return Localizer(country.map, describer, likelihood, backend=PlainBackend())


@pytest.fixture
def localizer(country):
    return started(country, country.describer)


def picture(value=None):
    if value is not None:
        return np.full((16, 16, 3), value, np.uint8)
    return np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (None, "missing"),
        (NoImage("the lens is covered"), "covered"),
        (picture(0), "black"),
        (picture(120), "shows nothing"),
        (picture() // 40, "black"),  # the noise of a camera in the dark
        (np.zeros((16, 20, 3), np.uint8), "shape"),
        (np.zeros((16, 16), np.uint8), "shape"),
    ],
)
def test_an_image_that_shows_nothing_is_left_out_and_named(image, words, localizer, country):
    other = started(country)
    found = localizer.update(image, STEP, 0.3)
    assert words in found.problems[0]
    assert found.estimate == other.update(None, STEP, 0.3).estimate


def test_an_image_is_turned_as_its_camera_noted(tmp_path):
    upright = np.zeros((16, 16, 3), np.uint8)
    upright[:8] = 200  # ahead is bright
    note = Image.Exif()
    note[ExifTags.Base.Orientation] = 6  # to be turned to the right
    Image.fromarray(np.rot90(upright).copy()).save(tmp_path / "a.png", exif=note)
    assert np.array_equal(read_image(tmp_path / "a.png"), upright)


def test_an_image_of_16_bits_is_called_that_and_not_missing(localizer, tmp_path):
    Image.fromarray(np.full((16, 16), 3000, np.uint16)).save(tmp_path / "deep.png")
    (problem,) = localizer.update(read_image(tmp_path / "deep.png"), STEP, 0.3).problems
    assert "deep.png has more than 8 bits per pixel (mode I;16); save it as an 8-bit image first" in problem
    (tmp_path / "torn.png").write_bytes(b"PNG")
    (problem,) = localizer.update(read_image(tmp_path / "torn.png"), STEP, 0.3).problems
    assert "torn.png cannot be read as an image" in problem
    assert problem.endswith(": it was left out")
    assert read_image(tmp_path / "none.png") == NoImage()


def test_without_odometry_the_belief_spreads_and_goes_on(localizer):
    localizer.update(picture(), STEP, 0.3)
    before = np.zeros(localizer.filter.grid.shape)
    before[0, 10, 15] = 1
    localizer.filter.start(before)
    found = localizer.update(None, None, None)
    assert "no odometry" in found.problems[0]
    assert found.estimate.sigma == pytest.approx(20 * math.sqrt(2), rel=0.3)


def test_a_stop_is_not_the_last_motion_that_is_known(country):
    spread = []
    for motions in ((STEP,), (STEP, Odometry(0.0, 0.0, 0.0))):
        localizer, place = started(country), np.zeros(country.map.info.grid.shape)
        place[0, 10, 15] = 1
        for motion in motions:
            localizer.update(None, motion)
        localizer.filter.start(place)
        spread.append(localizer.update(None, None).estimate.sigma)
    assert spread[0] == spread[1] > 0


def test_a_heading_that_is_not_finite_is_left_out(localizer):
    assert "heading is not finite" in localizer.update(picture(), STEP, math.nan).problems[0]


def test_a_flight_that_leaves_the_map_begins_anew_and_says_so(localizer):
    found = localizer.update(picture(), Odometry(1e6, 0.0, 0.0), 0.3)
    assert found.estimate.restarted
    assert "began anew" in found.problems[0]


@pytest.mark.parametrize("ahead", [0.0, 30.0])
def test_a_belief_that_spreads_begins_anew_after_as_many_updates_with_an_image_ahead(ahead, country):
    settings = FilterSettings(restart_after=3, converged=100.0)
    localizer = Localizer(country.map, None, None, settings, PlainBackend())
    place = np.zeros(localizer.filter.grid.shape)
    place[:, 10, 15] = 1
    localizer.filter.start(place)
    assert localizer.update(None, Odometry(0.0, 0.0, 0.0), ahead=ahead).estimate.converged
    lost = Odometry(0.0, 0.0, 0.0, distance=6000.0)  # a spread of 300 m
    restarted = [localizer.update(None, lost, ahead=ahead).estimate.restarted for _ in range(4)]
    assert restarted == [False, False, False, True]


def test_the_belief_that_is_recorded_is_about_the_vehicle_and_not_about_its_image(country):
    localizer = Localizer(country.map, None, None, backend=PlainBackend())
    grid, recorder = localizer.filter.grid, Recorder()
    here = np.zeros(grid.shape)
    here[1, 10, 15] = here[2, 10, 15] = 1
    localizer.filter.start(here)
    record_flight(localizer, [FlightStep(0.0, Odometry(0.0, 0.0, 0.0), ahead=170.0)], recorder)
    belief, found = recorder.beliefs[0], recorder.updates[0].estimate
    assert belief.sum() == pytest.approx(1)
    assert belief.sum(0) @ grid.x_centres == pytest.approx(found.x, abs=10)
    assert belief.sum(1) @ grid.y_centres == pytest.approx(found.y, abs=10)


class Watching:
    """Keeps the crops that a describer is given."""

    def __init__(self, describer):
        self.side, self.size, self.name, self.device = (
            getattr(describer, part) for part in ("side", "size", "name", "device")
        )
        self._describer = describer

    def __call__(self, crops):
        self.crops = crops
        return self._describer(crops)


def test_a_describer_is_given_colours_from_0_to_1_averaged_to_its_size(country):
    watching = Watching(country.describer)
    localizer = started(country, watching)
    small = picture() // 2 + 60
    localizer.update(small, STEP, 0.3)
    assert watching.crops[0].numpy() == pytest.approx(np.moveaxis(small, -1, 0) / 255)
    grain = np.tile(np.array([[50, -50], [-50, 50]]), (16, 16))[..., None]
    localizer.update((np.kron(small, np.ones((2, 2, 1), np.uint8)) + grain).astype(np.uint8), STEP, 0.3)
    assert watching.crops[0].numpy() == pytest.approx(np.moveaxis(small, -1, 0) / 255)


def test_an_image_of_little_contrast_still_shows_ground(localizer):
    hazy = (picture() // 64 + 100).astype(np.uint8)  # four levels, a deviation of 1.1
    assert localizer.update(hazy, STEP, 0.3).problems == ()


@pytest.mark.parametrize(
    "motion", [Odometry(3e6, 0.0, 0.0, distance=1.0), Odometry(1.0, 0.0, 0.0, distance=3e6)]
)
def test_a_motion_longer_than_any_flight_is_left_out(motion, localizer):
    found = localizer.update(picture(), motion, 0.3)
    assert found.problems[0] == "a motion of 3e+06 m was left out"
    assert not found.estimate.restarted


def test_an_image_farther_ahead_than_any_flight_is_left_out_and_forgotten(localizer, country):
    found = localizer.update(picture(), STEP, 0.3, ahead=3e6)
    assert found.problems[0] == "the image is 3e+06 m ahead: it was left out"
    other = started(country)
    assert found.estimate == other.update(None, STEP, 0.3).estimate
    assert np.array_equal(localizer.places(), other.places())


def test_a_vehicle_that_leaves_the_map_behind_its_image_begins_anew_and_says_so(country):
    localizer = Localizer(country.map, None, None, backend=PlainBackend())
    localizer.update(None, Odometry(0.0, 0.0, 0.0), ahead=30.0)
    found = localizer.update(None, Odometry(1e6, 0.0, 0.0), ahead=30.0)
    assert found.estimate.restarted
    assert "began anew" in found.problems[-1]


def test_what_both_halves_of_an_update_leave_out_is_added_up(country):
    """Of 0.5, 0.25, 0.15 and 0.1, a gate of a fifth leaves out 0.1 at first, and then 0.15 of 0.9."""
    localizer = Localizer(country.map, None, None, FilterSettings(gate=0.2), PlainBackend())
    place = np.zeros(localizer.filter.grid.shape)
    place[[1, 4, 7, 10], 10, 15] = 0.5, 0.25, 0.15, 0.1
    localizer.filter.start(place)
    found = localizer.update(None, Odometry(0.0, 0.0, 0.0), ahead=20.0).estimate
    assert found.discarded == pytest.approx(0.1 + 0.15 / 0.9)


def test_a_compass_weighs_also_where_the_image_lies_ahead(country):
    """All headings alike, and a compass of 3 degrees: the estimate looks along it."""
    localizer = Localizer(country.map, None, None, backend=PlainBackend())
    place = np.zeros(localizer.filter.grid.shape)
    place[:, 10, 15] = 1
    localizer.filter.start(place)
    heading = float(localizer.filter.grid.heading_centres[3])
    found = localizer.update(None, Odometry(0.0, 0.0, 0.0), heading, ahead=20.0).estimate
    assert found.heading == pytest.approx(heading, abs=0.05)


def test_an_image_of_another_size_shows_the_same_ground(localizer, country):
    large = np.kron(picture(), np.ones((4, 4, 1), np.uint8))
    other = started(country, country.describer)
    assert localizer.update(large, STEP, 0.3).estimate == other.update(picture(), STEP, 0.3).estimate


@pytest.fixture(scope="module")
def results(country, tmp_path_factory):
    pytest.importorskip("rasterio")
    out = tmp_path_factory.mktemp("flight")
    simulate_flight(country.stack.dates(["summer"]), 16, FlightPlan(updates=8, step=30.0)).save(out)
    (out / "images" / "0003.png").unlink()
    localizer = started(country, country.describer, "linear")
    recorder = Recorder(every=3)
    steps = read_flight(out / "flight.csv", out / "images", "EPSG:32633")
    record_flight(localizer, [replace(step, time=START + step.time) for step in steps], recorder)
    summary = summarize(recorder, 1.0)
    write_results(recorder, country.map, out / "found", summary)
    return out / "found", recorder


def test_the_table_has_a_row_for_each_update_with_its_problems(results):
    rows = (results[0] / "trajectory.csv").read_text().splitlines()
    assert len(rows) == 9
    assert "the image is missing" in rows[4]
    assert rows[0].split(",")[:5] == ["time", "x", "y", "heading", "sigma"]
    assert [float(row.split(",")[0]) for row in rows[1:]] == [START + number for number in range(8)]


def test_files_for_maps_and_globes_lie_at_the_estimates(results):
    pyproj = pytest.importorskip("pyproj")
    folder, recorder = results
    line = json.loads((folder / "trajectory.geojson").read_text())["features"][0]["geometry"]["coordinates"]
    back = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32633", always_xy=True).transform(*line[-1])
    last = recorder.updates[-1].estimate
    assert back == pytest.approx((last.x, last.y), abs=0.01)
    tree = ET.parse(folder / "trajectory.kml")
    (text,) = (node.text for node in tree.iter(KML + "coordinates"))
    assert [float(part) for part in text.split()[-1].split(",")[:2]] == pytest.approx(line[-1], abs=1e-6)


def test_means_before_the_belief_has_converged_are_lines_of_their_own(results, country, tmp_path):
    recorder = Recorder()
    flags = [False, False, True, True, False]
    for step, update, flag in zip(results[1].steps, results[1].updates, flags, strict=False):
        recorder.add(step, replace(update, estimate=replace(update.estimate, converged=flag)), None)
    write_results(recorder, country.map, tmp_path, summarize(recorder, 1.0))
    features = json.loads((tmp_path / "trajectory.geojson").read_text())["features"]
    places = [each["geometry"]["coordinates"] for each in features[3:]]
    assert [each["properties"]["converged"] for each in features] == [False, True, False, *flags]
    lines = [each["geometry"]["coordinates"] for each in features[:3]]
    assert lines == [places[:2], places[1:4], places[3:]]
    names = [node.text for node in ET.parse(tmp_path / "trajectory.kml").iter(KML + "name")]
    means = "means of beliefs that had not converged"
    assert names[1:] == [means, "estimated trajectory", means]


def test_the_belief_is_a_map_whose_mean_is_the_last_estimate(results):
    rasterio = pytest.importorskip("rasterio")
    folder, recorder = results
    with rasterio.open(folder / "belief.tif") as file:
        belief, place = file.read(1), file.transform
    assert belief.sum() == pytest.approx(1, abs=1e-5)
    rows, columns = np.indices(belief.shape)
    shown = recorder.updates[-1].estimate
    assert place.c + place.a * ((columns + 0.5) * belief).sum() == pytest.approx(shown.x, abs=0.1)
    assert place.f + place.e * ((rows + 0.5) * belief).sum() == pytest.approx(shown.y, abs=0.1)


def test_every_third_belief_is_kept_and_the_last(results):
    assert sorted(results[1].beliefs) == [0, 3, 6, 7]


def test_the_belief_is_drawn_north_up_on_the_sides_of_the_map(results, country, tmp_path, monkeypatch):
    shown = []

    def watched(drawing):
        shown.append(drawing)
        return draw_errors(drawing)

    monkeypatch.setattr("torchcaps.viz.draw_errors", watched)
    grid, recorder = country.map.info.grid, results[1]
    write_results(recorder, country.map, tmp_path, summarize(recorder, 1.0))
    (drawing,) = shown
    assert drawing.metres == (grid.columns * grid.cell, grid.rows * grid.cell)
    belief, (across, down) = drawing.beliefs[7], drawing.estimates[-1]
    rows, columns = np.indices(belief.shape)
    assert ((columns + 0.5) * belief).sum() / grid.columns == pytest.approx(across, abs=1e-3)
    assert ((rows + 0.5) * belief).sum() / grid.rows == pytest.approx(down, abs=1e-3)


def test_the_page_needs_no_other_file(results):
    page = (results[0] / "flight.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page.count("data:image/png") == 1 + len(results[1].beliefs)
    assert (results[0] / "belief.png").stat().st_size > 1000
    assert (results[0] / "errors.png").stat().st_size > 1000


def test_the_page_shows_numbers_with_units_under_words(results, country, tmp_path):
    summary = summarize(results[1], 2.0) | {
        "final_error_m": 30.97,
        "share_of_truth_in_95_percent_region": 1.0,
    }
    write_results(results[1], country.map, tmp_path, summary | {"mean_error_after_convergence_m": None})
    page = (tmp_path / "flight.html").read_text()
    assert "<dt>error at the end</dt><dd>31.0 m</dd>" in page
    assert "<dt>truth inside the 95 % region</dt><dd>100%</dd>" in page
    assert "<dt>mean error after convergence</dt><dd>unknown</dd>" in page


def test_a_summary_counts_what_follows_convergence(results):
    recorder = Recorder()
    steps, updates = results[1].steps, results[1].updates
    for number, (sigma, offset) in enumerate([(500.0, 400.0), (90.0, 30.0), (50.0, 10.0), (5.0, 50.0)]):
        step = replace(steps[number], truth=(0.0, 0.0))
        found = replace(updates[0].estimate, x=offset, y=0.0, sigma=sigma, converged=sigma < 100)
        found = replace(found, discarded=1e-3 * number, restarted=number == 0)
        recorder.add(step, replace(updates[0], estimate=found, problems=("dark",) * (number == 2)), None)
    summary = summarize(recorder, 2.0)
    assert (summary["final_error_m"], summary["final_sigma_m"]) == (50, 5)
    assert (summary["restarts"], summary["updates_with_problems"]) == (1, 1)
    assert summary["largest_discarded_share"] == pytest.approx(3e-3)
    assert summary["updates_to_convergence"] == 2
    assert summary["mean_error_after_convergence_m"] == pytest.approx(30)
    assert summary["share_of_truth_in_95_percent_region"] == pytest.approx(2 / 3)
    assert summary["seconds_per_update"] == 0.5


def test_nineteen_of_twenty_places_of_a_round_normal_law_lie_in_its_region(results):
    recorder, update = Recorder(), results[1].updates[0]
    for x, y in np.random.default_rng(0).normal(0, 10.0, (4000, 2)):
        found = replace(update.estimate, x=float(x), y=float(y), sigma=10 * math.sqrt(2), converged=True)
        step = FlightStep(0.0, None, truth=(0.0, 0.0))
        recorder.add(step, replace(update, estimate=found), None)
    assert summarize(recorder, 1.0)["share_of_truth_in_95_percent_region"] == pytest.approx(0.95, abs=0.01)


def test_shares_of_a_picture_count_from_the_north_west():
    grid = Grid(west=100.0, south=200.0, cell=10.0, columns=4, rows=2, headings=1)
    assert _fraction(100.0, 220.0, grid) == (0, 0)
    assert _fraction(110.0, 205.0, grid) == pytest.approx((0.25, 0.75))


def test_distances_are_kept_with_the_run(country, tmp_path):
    country.matching.save(tmp_path)
    assert load_matching(tmp_path) == country.matching
    assert np.mean(country.matching.same) < np.mean(country.matching.other)
    with pytest.raises(MissingDataError, match="stopped goes on with --resume"):
        load_matching(tmp_path / "none")


def test_a_likelihood_is_chosen_by_its_name(country):
    same, other = np.array(country.matching.same), np.array(country.matching.other)
    wanted = {
        "linear": linear_likelihood(),
        "bayesian": bayesian_likelihood(same, other),
        "ratio": ratio_likelihood(same, other, 0.7),
    }
    for name, likelihood in wanted.items():
        assert np.array_equal(country.matching.likelihood(name).weights, likelihood.weights)
    with pytest.raises(UserError, match="bayesian, linear, ratio"):
        country.matching.likelihood("other")


def test_a_map_of_crops_of_another_size_is_refused(country, tmp_path):
    AbBrief(side=12, size=country.describer.size).save(tmp_path)
    replace(country.matching, side=12).save(tmp_path)
    words = ["uav", "localize", country.path, tmp_path / "flight.csv", tmp_path]
    (tmp_path / "flight.csv").write_text("time,forward,left,turn,image\n0,0,0,0,\n")
    with pytest.raises(UserError, match=r"crops of 160 m, but .* of 120 m"):
        torchcaps(*words, "--run", tmp_path, "--out", tmp_path / "found")


def test_a_photograph_given_as_a_map_says_what_makes_one(tmp_path):
    (tmp_path / "a.tif").write_bytes(b"II*\0")
    with pytest.raises(
        UserError, match=r"a\.tif is no compiled map .*: make one with torchcaps uav compile-map"
    ):
        open_map(tmp_path / "a.tif")


def test_a_recipe_of_another_task_is_refused_before_anything_is_written(tmp_path):
    words = ["uav", "train", tmp_path, "--out", tmp_path / "run", "--recipe", "mnist/dr_capsnet"]
    with pytest.raises(UserError, match=r"mnist/dr_capsnet is a recipe of classification; .* retrieval"):
        torchcaps(*words)
    with pytest.raises(UserError, match="at least 2 places with 2 views each are needed, not 1 with 20"):
        torchcaps(*words[:-2], "--places", 1)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_memory_stays_flat_over_ten_thousand_updates(country):
    pytest.importorskip("numba")
    script = Path(__file__).with_name("ten_thousand_updates.py")
    words = [sys.executable, str(script), str(country.path)]
    grown = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert grown < 2_000  # KiB, which is 200 bytes an update
