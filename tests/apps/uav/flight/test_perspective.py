import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from torchcaps.apps.uav import FlightPlan, Localizer, Look, Terrain, read_flight, simulate_flight
from torchcaps.apps.uav.filter import FilterSettings, MotionNoise, Odometry, PlainBackend
from torchcaps.apps.uav.flight import Camera, View
from torchcaps.apps.uav.flight.perspective import camera_axes, render_view
from torchcaps.core import UserError
from torchcaps.data import SeasonStack, sample_crops

pytest.importorskip("cv2")
CAMERA = Camera(focal=120.0, width=160, height=120)


def ramp(side=250, pixel=2.0):
    """A map whose red is the column and whose green is the row."""
    rows, columns = np.indices((side, side))
    images = np.stack([columns, rows, np.full_like(rows, 9)]).astype(np.uint8)[None]
    return SeasonStack(images, np.ones((1, side, side), bool), ("one",), 1000.0, 5000.0, pixel, "EPSG:32633")


@pytest.mark.parametrize(("tilt", "heading"), [(0.0, 0.4), (25.0, 2.0), (50.0, 4.4)])
def test_a_pixel_shows_the_ground_that_its_ray_meets(tilt, heading):
    stack, position = ramp(), np.array([1240.0, 4755.0, 60.0])
    axes = camera_axes(heading, math.radians(tilt))
    view = render_view(stack, CAMERA, position, axes, farthest=600.0)
    checked = 0
    for column, row in [(80, 60), (20, 110), (140, 100), (60, 80), (100, 119)]:
        ray = axes @ np.linalg.inv(CAMERA.matrix) @ [column, row, 1.0]
        x, y = (position + ray * position[2] / -ray[2])[:2]
        expected = stack.centres_of(np.array([x]), np.array([y]))[0]
        if ((expected > 1) & (expected < 248)).all():
            assert view.image[row, column, :2] == pytest.approx(
                expected, abs=0.6
            )  # half a level, and a little
            checked += 1
    assert checked >= 4


def test_outside_of_the_map_is_black():
    view = render_view(ramp(), CAMERA, np.array([990.0, 5010.0, 30.0]), camera_axes(math.pi / 2, 0.0), 60.0)
    assert view.image[30].max() == 0
    assert view.image.max() > 0


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    terrain = Terrain(seed=4).draw(1100.0, 800.0, 2.0, ("summer",))
    plan = FlightPlan(updates=3, step=40.0, seed=3, look=Look(130.0, math.radians(35)))
    folder = tmp_path_factory.mktemp("oblique")
    flight = simulate_flight(terrain, 40, plan)
    flight.save(folder)
    return terrain, flight, folder


def test_a_tilted_camera_gives_squares_of_ground_ahead_of_the_vehicle(flown):
    terrain, flight, _ = flown
    truth = odometry_headings(flight)
    for step, image, heading in zip(flight.steps, flight.images, truth, strict=True):
        assert 20 < step.ahead < 130
        x, y = np.array(step.truth) + step.ahead * np.array([math.cos(heading), math.sin(heading)])
        centre = torch.from_numpy(terrain.centres_of(np.array([x]), np.array([y])))
        direct = sample_crops(
            torch.from_numpy(terrain.images),
            torch.zeros(1, dtype=torch.int64),
            centre,
            torch.tensor([heading]),
            40,
        )
        seen = torch.from_numpy(image).permute(2, 0, 1).float()
        smooth = [torch.nn.functional.avg_pool2d(each, 4).flatten() for each in (direct[0], seen)]
        assert torch.corrcoef(torch.stack(smooth))[0, 1] > 0.9


def odometry_headings(flight):
    """The true headings: the course between places, which the first two share only roughly."""
    places = np.array([step.truth for step in flight.steps])
    course = [math.atan2(*(after - before)[::-1]) for before, after in pairwise(places)]
    return [flight.steps[0].heading, *course]


def test_the_log_says_how_far_ahead_an_image_lies(flown):
    _, flight, folder = flown
    steps = read_flight(folder / "flight.csv", folder / "images", "EPSG:32633")
    assert [step.ahead for step in steps] == pytest.approx([step.ahead for step in flight.steps], abs=1e-3)


def test_the_estimate_is_that_of_the_vehicle_behind_its_image(country):
    noise = FilterSettings(noise=MotionNoise(0.05, 0.0))
    localizer = Localizer(country.map, None, None, noise, PlainBackend())
    grid = localizer.filter.grid
    belief = np.zeros(grid.shape)
    belief[3, 10, 15] = 1  # the middle of the image before the motion
    heading = float(grid.heading_centres[3])
    localizer.filter.start(belief)
    localizer.update(None, Odometry(0.0, 0.0, 0.0), heading, ahead=45.0)
    localizer.filter.start(belief)
    found = localizer.update(None, Odometry(30.0, 0.0, 0.0, distance=400.0), heading, ahead=60.0).estimate
    middle = np.array([grid.x_centres[15], grid.y_centres[10]])  # 45 m ahead of the vehicle at that time
    expected = middle + (30.0 - 45.0) * np.array([math.cos(heading), math.sin(heading)])
    assert (found.x, found.y) == pytest.approx(expected, abs=1.0)


def test_an_error_of_the_measured_turn_does_not_swing_the_vehicle_around_its_image(country):
    localizer = Localizer(country.map, None, None, FilterSettings(), PlainBackend())
    grid = localizer.filter.grid
    heading, belief = float(grid.heading_centres[3]), np.zeros(grid.shape)
    belief[3, 10, 15] = 1
    localizer.update(None, Odometry(0.0, 0.0, 0.0), heading, ahead=150.0)
    localizer.filter.start(belief)
    found = localizer.update(None, Odometry(0.0, 0.0, 0.5, distance=200.0), heading, ahead=150.0).estimate
    vehicle = np.array([grid.x_centres[15], grid.y_centres[10]]) - 150 * np.array(
        [math.cos(heading), math.sin(heading)]
    )
    assert math.dist((found.x, found.y), vehicle) < 15  # 0.5 rad over 150 m would be 75 m


@pytest.mark.parametrize(("altitude", "tilt"), [(0.0, 0.0), (math.nan, 0.0), (100.0, 61.0), (100.0, -1.0)])
def test_a_camera_that_sees_no_ground_is_refused(altitude, tilt):
    with pytest.raises(UserError, match="a camera"):
        Look(altitude, math.radians(tilt))


def test_the_axis_of_a_camera_meets_the_middle_of_its_image():
    down = camera_axes(0.3, 0.0)
    view = View(np.zeros((120, 160, 3), np.uint8), np.array([5.0, 6.0, 40.0]), down)
    pixels, depth = view.project(np.array([[5.0, 6.0, 0.0]]), CAMERA)
    assert pixels[0] == pytest.approx([79.5, 59.5])  # between the pixels 79 and 80, 59 and 60
    assert depth[0] == pytest.approx(40)


@pytest.mark.parametrize("tilt", [0.0, 20.0, 40.0])
def test_no_corner_of_an_image_shows_ground_beyond_the_farthest(tilt):
    look = Look(50.0, math.radians(tilt), camera=CAMERA)
    corners = np.array([[-0.5, -0.5, 1], [159.5, -0.5, 1], [159.5, 119.5, 1], [-0.5, 119.5, 1]])
    rays = corners @ np.linalg.inv(CAMERA.matrix).T @ camera_axes(1.0, look.tilt).T
    reached = np.linalg.norm(rays[:, :2] * 50.0 / -rays[:, 2:], axis=1).max()
    assert reached <= look.farthest < 2 * reached


@pytest.mark.parametrize("pixel", [0.25, 4.0])
def test_all_ground_in_view_is_drawn_whatever_the_size_of_its_pixels(pixel):
    bright = np.full((1, 3, 900, 900), 200, np.uint8)
    stack = SeasonStack(bright, bright[:, 0] > 0, ("one",), 0.0, 900 * pixel, pixel, "EPSG:32633")
    look = Look(60.0 * pixel, math.radians(30), camera=CAMERA)
    position = np.array([300.0 * pixel, 450.0 * pixel, look.altitude])
    view = render_view(stack, CAMERA, position, camera_axes(0.0, look.tilt), look.farthest)
    assert view.image.min() == 200


def test_an_oblique_flight_keeps_the_ground_ahead_on_the_map():
    side, altitude = 10, 60.0
    look = Look(altitude, math.radians(45), frames=2, camera=Camera(12.0, 16, 12))
    flight = simulate_flight(ramp(), side, FlightPlan(updates=60, step=30.0, look=look))
    places = np.array([step.truth for step in flight.steps]) - [1000.0, 4500.0]  # of 500 m to each side
    nearest = min(places.min(), (500 - places).min())
    reach = side * 2.0 / math.sqrt(2) + altitude  # half a diagonal, and as far ahead as high
    assert reach <= nearest < reach + 30
