import math

import numpy as np
import pytest

from torchcaps.apps.uav import (
    FlightPlan,
    FlightStep,
    read_flight,
    require_images,
    require_odometry,
    require_on_map,
    simulate_flight,
    write_flight,
)
from torchcaps.apps.uav.filter import Grid, MotionNoise, Odometry
from torchcaps.apps.uav.flight import step_of_row
from torchcaps.apps.uav.flight.flight import odometry_of
from torchcaps.apps.uav.flight.simulate import _turned
from torchcaps.apps.uav.localize import NoImage, read_image
from torchcaps.core import MissingDataError, UserError
from torchcaps.data import SeasonStack

HEADER = "time,forward,left,turn,distance,heading,image,x,y\n"
CRS = "EPSG:32633"


def read(tmp_path, text):
    (tmp_path / "flight.csv").write_text(text)
    return read_flight(tmp_path / "flight.csv", tmp_path / "images", CRS)


def test_a_row_is_read_in_metres_and_radians(tmp_path):
    (step,) = read(tmp_path, HEADER + "1.5,50,-2,90,51,180,a.png,7,8\n")
    assert (step.time, step.truth, step.problems) == (1.5, (7, 8), ())
    assert (step.odometry.forward, step.odometry.left, step.odometry.distance) == (50, -2, 51)
    assert step.odometry.turn == pytest.approx(math.pi / 2)
    assert step.heading == pytest.approx(math.pi)
    assert step.image.name == "a.png"


def test_only_the_needed_columns_have_to_be_there(tmp_path):
    (step,) = read(tmp_path, "time,forward,left,turn,image\n0,3,4,0,a.png\n")
    assert (step.heading, step.truth, step.odometry.travelled) == (None, None, 5)


def test_a_negative_distance_is_taken_for_none(tmp_path):
    (step,) = read(tmp_path, HEADER + "1,3,4,0,-7,0,a.png,,\n")
    assert step.odometry.travelled == 5


def test_a_turn_across_west_is_a_small_one():
    places, headings = np.array([[0.0, 0.0], [-10.0, 0.0]]), np.radians([179.0, -179.0])
    found = odometry_of(places, headings, MotionNoise(0.0, 0.0), np.random.default_rng(0))
    assert math.degrees(found[1].turn) == pytest.approx(2)


@pytest.mark.parametrize("value", ["nan", "", "inf", "fast"])
def test_odometry_that_is_no_number_is_left_out_and_named(value, tmp_path):
    (step,) = read(tmp_path, HEADER + f"1,{value},0,0,0,0,a.png,,\n")
    assert step.odometry is None
    named = f" (forward {value!r})" if value else ""
    assert step.problems == (f"the odometry is not finite{named}",)


def test_rows_that_go_back_in_time_are_left_out_and_named(tmp_path):
    steps = read(tmp_path, HEADER + "1,1,0,0,,,a,,\n3,2,0,0,,,b,,\n2,9,0,0,,,c,,\n4,4,0,0,,,d,,\n")
    assert [step.odometry.forward for step in steps] == [1, 2, 4]
    assert steps[2].problems == ("line 4 was left out with its motion: its time 2 is not after 3",)


def test_rows_that_are_left_out_at_the_end_of_a_log_are_named_too(tmp_path):
    steps = read(
        tmp_path, HEADER + "1,1,0,0,,,a,,\n3,2,0,0,,,b,,\n0,9,0,0,,,c,,\n1,4,0,0,,,d,,\n2,4,0,0,,,e,,\n"
    )
    assert [step.time for step in steps] == [1, 3]
    assert steps[1].problems == (
        "line 4 was left out with its motion, and so were 2 lines after it: its time 0 is not after 3",
    )


def test_an_infinite_time_does_not_cost_the_rows_after_it(tmp_path):
    steps = read(tmp_path, HEADER + "1,1,0,0,,,a,,\ninf,2,0,0,,,b,,\n3,3,0,0,,,c,,\n")
    assert [step.time for step in steps] == [1, 3]
    assert steps[1].problems == ("line 3 was left out with its motion: its time is no number",)


@pytest.mark.parametrize(("cell", "is_named"), [("N/A", True), ("inf", True), ("nan", False), ("", False)])
def test_a_heading_that_is_no_number_is_named(cell, is_named, tmp_path):
    (step,) = read(tmp_path, HEADER + f"1,1,0,0,,{cell},a,,\n")
    assert step.heading is None
    assert step.problems == ((f"what is no number was left out (heading {cell!r})",) if is_named else ())


def test_a_first_row_without_a_time_does_not_cost_the_others(tmp_path):
    steps = read(tmp_path, "time,forward,left,turn,image\n,1,0,0,\n1,1,0,0,\n2,1,0,0,\n")
    assert [step.time for step in steps] == [1.0, 2.0]
    assert "line 2 was left out" in steps[0].problems[0]


def test_names_that_are_none_and_links_in_a_circle_show_no_image(tmp_path):
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    row = {"time": "1", "forward": "1", "left": "0", "turn": "0"}
    for name in ("a\0b", "loop.png/b.png", "a" * 300):
        assert isinstance(read_image(step_of_row({**row, "image": name}, tmp_path).image), NoImage)


def test_an_image_outside_of_its_folder_is_not_followed(tmp_path):
    (step,) = read(tmp_path, HEADER + "1,1,0,0,,,../../etc/passwd,,\n")
    assert step.image is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        (HEADER, "no rows"),
        ("a,b\n1,2\n", "should have the columns time"),
        ("# a flight\n" + HEADER, "it has # a flight"),
        (
            "time;forward;left;turn;image\n0;1,5;0;0;a\n",
            "; save it with commas between the columns and points",
        ),
        (HEADER + "10:00:01,1,0,0,,,a,,\n", r"flight\.csv has no row whose time is a number: .* seconds"),
        (
            "filename,lat,lon,date,Phi1\na,45,15,d,90\na,45,15,d,\n",
            "line 3 of the log has no Phi1 in degrees",
        ),
    ],
)
def test_a_log_that_is_none_is_refused(text, message, tmp_path):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="no flight log"):
        read_flight(tmp_path / "none.csv", tmp_path, CRS)


def test_uav_visloc_gives_places_headings_and_odometry(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    to_degrees = pyproj.Transformer.from_crs(CRS, "EPSG:4326", always_xy=True).transform
    rows = ["num,filename,date,lat,lon,height,Omega,Kappa,Phi1,Phi2"]
    for k in range(4):  # to the north: the compass says 0
        longitude, latitude = to_degrees(500_000, 5_000_000 + 40 * k)
        rows.append(f"{k},01_{k}.JPG,2018,{latitude:.9f},{longitude:.9f},400,0,0,0,0")
    steps = read(tmp_path, "\n".join(rows))
    assert [step.truth[1] for step in steps] == pytest.approx(
        [5_000_000 + 40 * k for k in range(4)], abs=0.01
    )
    assert all(step.heading == pytest.approx(math.pi / 2) for step in steps)
    assert steps[0].odometry.travelled == 0
    assert all(abs(step.odometry.forward - 40) < 10 for step in steps[1:])
    assert steps[2].image.name == "01_2.JPG"


def test_the_odometry_of_uav_visloc_has_the_noise_of_the_thesis(tmp_path):
    """A deviation of 5 m and 15 degrees at each 100 m, to the north."""
    pyproj = pytest.importorskip("pyproj")
    to_degrees = pyproj.Transformer.from_crs(CRS, "EPSG:4326", always_xy=True).transform
    rows = ["filename,lat,lon,date,heading"]
    for k in range(200):
        longitude, latitude = to_degrees(500_000, 5_000_000 + 100 * k)
        rows.append(f"{k}.jpg,{latitude:.9f},{longitude:.9f},2018,0")
    motions = [step.odometry for step in read(tmp_path, "\n".join(rows))[1:]]
    measured = np.array(
        [(motion.forward - 100, motion.left, math.degrees(motion.turn)) for motion in motions]
    )
    assert measured.std(0) == pytest.approx([5, 5, 15], rel=0.2)
    assert np.abs(measured.mean(0)) == pytest.approx(0, abs=4)


@pytest.mark.parametrize(
    ("crs", "x", "y"), [("EPSG:32633", 300_000, 5_000_000), ("EPSG:3035", 2_700_000, 2_000_000)]
)
def test_the_compass_of_uav_visloc_counts_from_north_whatever_the_projection(tmp_path, crs, x, y):
    pyproj = pytest.importorskip("pyproj")
    longitude, latitude = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(x, y)
    path = tmp_path / "flight.csv"
    path.write_text(f"filename,lat,lon,date,Phi1\na,{latitude:.9f},{longitude:.9f},d,40\n")
    (step,) = read_flight(path, tmp_path, crs)
    convergence = pyproj.Proj(crs).get_factors(longitude, latitude).meridian_convergence
    assert abs(convergence) > 1
    assert math.degrees(step.heading) == pytest.approx(50 + convergence, abs=0.1)


def test_a_simulated_flight_is_read_as_it_was_flown(country, tmp_path):
    flight = simulate_flight(country.stack.dates(["winter"]), 16, FlightPlan(updates=7, seed=2))
    flight.save(tmp_path)
    steps = read_flight(tmp_path / "flight.csv", tmp_path / "images", CRS)
    for read_back, flown in zip(steps, flight.steps, strict=True):
        assert read_back.truth == pytest.approx(flown.truth, abs=1e-3)
        assert read_back.odometry.forward == pytest.approx(flown.odometry.forward, abs=1e-3)
        assert read_back.heading == pytest.approx(flown.heading, abs=1e-4)
        assert read_back.image.is_file()


def test_a_log_keeps_times_of_the_day_and_motions_that_are_unknown(tmp_path):
    now = 1_700_000_000.25
    flown = [FlightStep(now + k, motion) for k, motion in enumerate([Odometry(3.0, 4.0, 0.5), None])]
    write_flight(tmp_path / "flight.csv", flown)
    found = read_flight(tmp_path / "flight.csv", tmp_path / "images", CRS)
    assert [step.time for step in found] == [now, now + 1]
    assert found[0].odometry.travelled == 5
    assert found[1].odometry is None


def test_a_log_keeps_names_of_images_that_have_a_comma(tmp_path):
    image = tmp_path / "images" / "north, first.png"
    write_flight(tmp_path / "flight.csv", [FlightStep(0.0, Odometry(0.0, 0.0, 0.0), image=image)])
    (found,) = read_flight(tmp_path / "flight.csv", tmp_path / "images", CRS)
    assert found.image == image.resolve()
    assert found.problems == ()


@pytest.mark.parametrize("wrong", [{"updates": 0}, {"updates": -3}, {"step": -50.0}, {"step": math.nan}])
def test_a_plan_without_updates_or_steps_is_refused(wrong):
    with pytest.raises(UserError, match="a flight has"):
        FlightPlan(**wrong)


def test_noise_of_a_simulated_flight_is_that_of_the_thesis(country):
    plan = FlightPlan(updates=3000, seed=1, pixel_noise=0.0)
    noisy = simulate_flight(country.stack.dates(["summer"]).columns(0, 60), 4, plan)
    places = np.array([step.truth for step in noisy.steps])
    travelled = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert travelled == pytest.approx(50, abs=1e-6)
    measured = np.array([math.hypot(s.odometry.forward, s.odometry.left) for s in noisy.steps[1:]])
    assert (measured - 50).std() == pytest.approx(50 * MotionNoise().place, rel=0.1)


def test_without_noise_odometry_leads_along_the_true_course(country):
    plan = FlightPlan(updates=30, seed=5, noise=MotionNoise(0.0, 0.0), heading_sigma=0.0)
    steps = simulate_flight(country.stack.dates(["summer"]), 16, plan).steps
    x, y = steps[0].truth
    heading = steps[0].heading
    for step in steps[1:]:
        motion = step.odometry
        x += motion.forward * math.cos(heading) - motion.left * math.sin(heading)
        y += motion.forward * math.sin(heading) + motion.left * math.cos(heading)
        heading += motion.turn
        assert (x, y) == pytest.approx(step.truth, abs=1e-6)


def flat(pixels, metres, value=128):
    """A map of one grey."""
    shape = (1, 3, pixels, pixels)
    known = np.ones((1, pixels, pixels), bool)
    return SeasonStack(np.full(shape, value, np.uint8), known, ("one",), 0.0, pixels * metres, metres, CRS)


def test_all_noise_of_a_plan_is_that_of_the_thesis():
    """Over a map that is too large for its borders to turn the course."""
    flight = simulate_flight(flat(500, 1000.0), 4, FlightPlan(updates=2000))
    places = np.array([step.truth for step in flight.steps])
    moves = np.diff(places, axis=0)
    course = np.unwrap(np.arctan2(moves[:, 1], moves[:, 0]))
    turns = np.diff(course)
    compass = [
        math.remainder(s.heading - c, 2 * math.pi) for s, c in zip(flight.steps[1:], course, strict=True)
    ]
    measured = np.array([step.odometry.turn for step in flight.steps[2:]])
    assert np.degrees(np.std(turns)) == pytest.approx(12, rel=0.1)
    assert np.degrees(np.std(compass)) == pytest.approx(3, rel=0.1)
    assert np.degrees(np.std(measured - turns)) == pytest.approx(0.15 * 50, rel=0.1)
    assert np.std(np.stack(flight.images)) == pytest.approx(4, rel=0.1)


def test_images_of_a_flight_show_the_map_alone_in_any_heading():
    plan = FlightPlan(updates=400, pixel_noise=0.0)
    flight = simulate_flight(flat(50, 10.0, 255), 16, plan)
    assert min(image.min() for image in flight.images) == 255  # beside the map it is black


def test_an_update_over_ground_that_the_map_does_not_show_has_no_image():
    stack = flat(60, 10.0)
    stack.known[0, :, :30] = False
    flight = simulate_flight(stack, 8, FlightPlan(updates=80, seed=1))
    for step, image in zip(flight.steps, flight.images, strict=True):
        assert (step.image is None) == (image is None)
        if abs(step.truth[0] - 300) > 50:
            assert (image is None) == (step.truth[0] < 300)
    assert 0 < sum(image is None for image in flight.images) < 80


@pytest.mark.parametrize(
    ("place", "course", "turned"),
    [((50, 50), 30, 30), ((95, 50), 0, 90), ((50, 95), 90, 180), ((95, 95), 45, 180), ((5, 5), 200, 95)],
)
def test_a_course_is_turned_as_little_as_keeps_the_next_place_on_the_map(place, course, turned):
    """Of steps of 50 m on 100 by 100 m; turns are of 15 degrees, to the left where both sides will do."""
    low, high = np.zeros(2), np.full(2, 100.0)
    found = _turned(np.array(place, float), math.radians(course), low, high, 50.0)
    assert math.degrees(found) % 360 == pytest.approx(turned)


def test_spaces_after_commas_are_not_part_of_the_names(tmp_path):
    (step,) = read(tmp_path, "time, forward, left, turn, image\n0, 3, 4, 0, a.png\n")
    assert (step.odometry.travelled, step.image.name) == (5, "a.png")


def test_a_folder_with_none_of_the_images_of_a_log_is_refused(tmp_path):
    steps = read(tmp_path, HEADER + "1,1,0,0,,,a.png,,\n2,1,0,0,,,b.png,,\n")
    with pytest.raises(MissingDataError, match="no folder of images at"):
        require_images(steps, tmp_path / "images")
    (tmp_path / "images").mkdir()
    with pytest.raises(MissingDataError, match=r"none of the 2 images that the log names, such as a\.png"):
        require_images(steps, tmp_path / "images")
    (tmp_path / "images/a.png").touch()
    deeper = read(tmp_path, HEADER + "1,1,0,0,,,images/a.png,,\n")
    with pytest.raises(MissingDataError, match=r"such as images/a\.png: names in the log count from that"):
        require_images(deeper, tmp_path / "images")
    (tmp_path / "images/a.png").unlink()
    (tmp_path / "images/b.png").touch()
    require_images(steps, tmp_path / "images")


def test_a_log_without_odometry_is_refused(tmp_path):
    for cells in ('"1,5",0,0', ",,"):
        steps = read(tmp_path, HEADER + f"1,0,0,0,,,a,,\n2,{cells},,,b,,\n3,{cells},,,c,,\n")
        with pytest.raises(UserError, match=r"no row of .*flight.csv after the first has a motion: the odom"):
            require_odometry(steps, tmp_path / "flight.csv")
    require_odometry(read(tmp_path, HEADER + "1,,,,,,a,,\n2,5,0,0,,,b,,\n3,,,,,,c,,\n"), tmp_path)
    require_odometry(read(tmp_path, HEADER + "1,,,,,,a,,\n"), tmp_path)  # one look, and no motion yet


def test_a_log_of_other_ground_than_the_map_is_refused(tmp_path):
    grid = Grid(500.0, 800.0, 10.0, 20, 10, 4)
    steps = read(tmp_path, HEADER + "1,1,0,0,,,a,15.02,45.14\n2,1,0,0,,,b,15.03,45.14\n")
    with pytest.raises(UserError, match=r"none of the 2 true places .* shows x 500 to 700, y 800 to 900 m"):
        require_on_map(steps, grid)
    for place in ("499,850", "701,850", "600,799", "600,901"):  # beyond each side alone
        with pytest.raises(UserError, match="none of the 1 true place"):
            require_on_map(read(tmp_path, HEADER + f"1,1,0,0,,,a,{place}\n"), grid)
    require_on_map(read(tmp_path, HEADER + "1,1,0,0,,,a,0,0\n2,1,0,0,,,b,510,890\n"), grid)
    require_on_map(read(tmp_path, HEADER + "1,1,0,0,,,a,,\n"), grid)
