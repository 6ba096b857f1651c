import math

import numpy as np
import pytest
import torch

from torchcaps.apps.uav import Terrain
from torchcaps.apps.uav.flight import Camera, View, orthoproject
from torchcaps.apps.uav.flight.orthoproject import (
    NoGroundError,
    _ahead,
    _nearest_square,
    _rectify,
    ground_height,
    triangulate,
)
from torchcaps.core import UserError
from torchcaps.data import sample_crops

cv2 = pytest.importorskip("cv2")
CAMERA = Camera(focal=300.0, width=400, height=300)
GROUND = 35.0  # metres of the plane over the origin of odometry


@pytest.fixture(scope="module")
def terrain():
    return Terrain(seed=4).draw(900.0, 1000.0, 1.0, ("summer",))


def axes_of(heading, pitch, bank=0.0):
    """Axes of a camera that looks `pitch` below the horizon, on a vehicle that leans aside, as columns."""
    flat = np.array([math.cos(heading), math.sin(heading), 0])
    forward = math.cos(pitch) * flat - math.sin(pitch) * np.array([0, 0, 1])
    right = np.array([math.sin(heading), -math.cos(heading), 0])
    level = np.stack([right, np.cross(forward, right), forward], axis=1)
    return cv2.Rodrigues(bank * flat)[0] @ level


def render(terrain, position, axes):
    """What a camera sees of the terrain as a plane, by following the ray of each pixel to the ground."""
    columns, rows = np.meshgrid(np.arange(CAMERA.width), np.arange(CAMERA.height))
    pixels = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3)
    rays = pixels @ np.linalg.inv(CAMERA.matrix).T @ axes.T
    scale = (GROUND - position[2]) / np.where(rays[:, 2] < -1e-6, rays[:, 2], np.nan)
    hits = position[:2] + rays[:, :2] * scale[:, None]
    centres = terrain.centres_of(terrain.west + hits[:, 0], terrain.south + hits[:, 1])
    centres = np.nan_to_num(centres, nan=-1e6).astype(np.float32).reshape(*rows.shape, 2)
    picture = np.ascontiguousarray(np.moveaxis(terrain.images[0], 0, -1))
    image = cv2.remap(picture, centres[..., 0], centres[..., 1], cv2.INTER_LINEAR)
    return View(image, np.array(position, float), axes)


def fly(terrain, altitude, pitch, heading, frames=10, bank=0.0):
    axes = axes_of(heading, math.radians(pitch), math.radians(bank))
    along = np.array([math.cos(heading), math.sin(heading)])
    places = [np.array([400.0, 200.0]) + 0.02 * altitude * k * along for k in range(frames)]
    return [render(terrain, np.array([*place, GROUND + altitude]), axes) for place in places]


@pytest.mark.parametrize(
    ("altitude", "pitch", "bank"),
    [
        (120.0, 90.0, 0.0),
        (120.0, 60.0, 0.0),
        (200.0, 75.0, 0.0),
        (200.0, 50.0, 0.0),
        (200.0, 90.0, 15.0),
        (200.0, 75.0, -10.0),
    ],
)
def test_a_rendered_view_gives_the_ground_below_it(altitude, pitch, bank, terrain):
    heading, metres, side = 0.7, 80.0, 80
    views = fly(terrain, altitude, pitch, heading, bank=bank)
    found = orthoproject(views, CAMERA, metres, side)
    assert abs(found.altitude - altitude) < 0.01 * altitude
    assert found.heading == pytest.approx(heading)
    place = views[-1].position[:2] + found.forward * np.array([math.cos(heading), math.sin(heading)])
    x, y = terrain.west + place[:1], terrain.south + place[1:]
    centre = torch.from_numpy(terrain.centres_of(x, y))
    images, date = torch.from_numpy(terrain.images), torch.zeros(1, dtype=torch.int64)
    direct = sample_crops(images, date, centre, torch.tensor([heading]), side)[0].numpy()
    pictures = (np.moveaxis(direct, 0, -1) * 255, found.image)
    smooth = [cv2.GaussianBlur(each.astype(np.float32), (0, 0), 2.0) for each in pictures]
    assert np.corrcoef(smooth[0].ravel(), smooth[1].ravel())[0, 1] > 0.95


def test_a_camera_that_looks_down_sees_the_square_below_it(terrain):
    assert orthoproject(fly(terrain, 150.0, 90.0, 0.2), CAMERA, 60.0, 40).forward == 0


def test_a_flatter_view_takes_a_square_farther_ahead(terrain):
    steep, flat = (orthoproject(fly(terrain, 150.0, pitch, 0.2), CAMERA, 60.0, 40) for pitch in (60.0, 45.0))
    assert 0 < steep.forward < flat.forward


def test_frames_that_show_nothing_are_refused(terrain):
    views = fly(terrain, 150.0, 90.0, 0.2, frames=3)
    blank = [View(np.zeros_like(view.image), view.position, view.axes) for view in views]
    with pytest.raises(UserError, match="nothing that can be tracked"):
        orthoproject(blank, CAMERA, 60.0, 40)
    with pytest.raises(UserError, match="two frames"):
        orthoproject(views[:1], CAMERA, 60.0, 40)


def test_frames_of_which_no_point_can_be_followed_are_refused(terrain):
    views = fly(terrain, 150.0, 90.0, 0.2, frames=3)
    lost = [View(np.roll(view.image, 150 * k, 1), view.position, view.axes) for k, view in enumerate(views)]
    lost[1] = View(255 - lost[1].image[::-1], lost[1].position, lost[1].axes)
    with pytest.raises(NoGroundError, match="only 0 points could be followed"):
        orthoproject(lost, CAMERA, 60.0, 40)


def test_a_square_that_is_too_large_for_the_view_is_refused(terrain):
    with pytest.raises(UserError, match="no whole square of 900 m"):
        orthoproject(fly(terrain, 150.0, 90.0, 0.2), CAMERA, 900.0, 40)


def test_the_ground_is_where_most_points_lie():
    heights = np.array([10.0] * 6 + [11.0] * 3 + [90.0] * 4)  # a tower among them
    points = np.stack([np.zeros(13), np.zeros(13), heights], axis=1)
    assert ground_height(points) == 11
    with pytest.raises(NoGroundError, match="only 7 points"):
        ground_height(points[:7])


def views_and_points():
    axes = axes_of(0.4, math.radians(70))
    nothing = np.zeros((300, 400, 3), np.uint8)
    views = [View(nothing, np.array([3.0 * k, 2.0 * k, 100.0]), axes) for k in range(4)]
    return views, np.array([[30.0, 10.0, 0.0], [40.0, -20.0, 5.0], [20.0, 30.0, -8.0]])


def test_points_are_found_where_their_tracks_meet_and_never_behind_the_camera():
    views, seen = views_and_points()
    behind = 2 * views[0].position - seen  # whose rays meet the image from the other side
    tracks = np.stack([view.project(np.concatenate([seen, behind]), CAMERA)[0] for view in views], axis=1)
    assert triangulate(tracks, views, CAMERA) == pytest.approx(seen, abs=1e-6)


def test_a_point_whose_track_leaves_its_ray_is_left_out():
    views, seen = views_and_points()
    tracks = np.stack([view.project(seen, CAMERA)[0] for view in views], axis=1)
    tracks[1, 2] += [0.0, 9.0]  # pixels in one of the views
    assert triangulate(tracks, views, CAMERA) == pytest.approx(seen[[0, 2]], abs=1e-6)


@pytest.mark.parametrize("tilt", [0.0, 35.0, 50.0])
def test_the_square_begins_where_the_camera_begins_to_see_the_ground(tilt):
    """The lowest row of pixels sees the ground at the tilt less half of the height of the view."""
    altitude, metres = 120.0, 60.0
    axes, ahead = axes_of(0.7, math.radians(90 - tilt)), np.array([math.cos(0.7), math.sin(0.7)])
    view = View(np.zeros((300, 400, 3), np.uint8), np.array([5.0, 6.0, GROUND + altitude]), axes)
    lowest = math.radians(tilt) - math.atan2(149.5, 300.0)
    exact = max(altitude * math.tan(lowest) + metres / 2, 0.0)
    assert 0 <= _nearest_square(view, CAMERA, GROUND, metres, ahead) - exact <= metres / 50


def test_a_square_fills_the_view_of_a_camera_that_looks_down_and_no_more():
    """From 150 m with a focal length of 300, the 299 steps between the 300 rows are 149.5 m."""
    axes, ahead = axes_of(0.7, math.radians(90)), np.array([math.cos(0.7), math.sin(0.7)])
    view = View(np.zeros((300, 400, 3), np.uint8), np.array([5.0, 6.0, 150.0]), axes)
    assert _nearest_square(view, CAMERA, 0.0, 149.4, ahead) == 0
    with pytest.raises(UserError, match=r"no whole square of 149\.6 m"):
        _nearest_square(view, CAMERA, 0.0, 149.6, ahead)


def test_a_camera_that_hangs_upside_down_and_looks_far_looks_ahead_all_the_same():
    axes = axes_of(0.7, math.radians(40))
    for turned in (axes, axes * [-1, -1, 1]):
        view = View(np.zeros((300, 400, 3), np.uint8), np.zeros(3), turned)
        assert _ahead(view) == pytest.approx([math.cos(0.7), math.sin(0.7)])


def test_corners_of_a_square_are_edges_of_its_pixels():
    image = np.random.default_rng(0).integers(0, 256, (12, 12, 3)).astype(np.uint8)
    edges = (
        np.array([[-0.5, -0.5], [7.5, -0.5], [7.5, 7.5], [-0.5, 7.5]]) + 2
    )  # of 8 pixels from the third on
    assert np.array_equal(_rectify(image, edges, 8), image[2:10, 2:10])
