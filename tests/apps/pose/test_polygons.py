"""Concave polygons of mesh files are cut into triangles that fill them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from torchcaps.apps.pose import polygons
from torchcaps.apps.pose.meshes import read_mesh
from torchcaps.apps.pose.polygons import cut_concave, triangulate
from torchcaps.core import UserError
from torchcaps.data.rendering import View, rasterise

pytest.importorskip("trimesh", reason="trimesh is not installed")

STAR = [
    ((0.4 if k % 2 else 1.0) * np.cos(np.pi * k / 5), (0.4 if k % 2 else 1.0) * np.sin(np.pi * k / 5))
    for k in range(10)
]
ARROW = [(0, 0), (4, -2), (1, 0), (4, 2)]
COMB = [(0, 0), (5, 0), (5, 3), (4, 3), (4, 1), (3, 1), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)]
STRAIGHT = [(0, 0), (1, 0), (2, 0), (2, 2), (1, 1), (0, 2)]  # a corner in the middle of an edge
SHAPES = {"star": STAR, "arrow": ARROW, "comb": COMB, "straight": STRAIGHT}


def area_of(points):
    x, y = np.array(points).T
    return (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def obj(points, words="{0}"):
    corners = "".join(f"v 0 {x} {y}\n" for x, y in points)
    return corners + "f " + " ".join(words.format(k + 1, k - len(points)) for k in range(len(points))) + "\n"


def off(points):
    corners = "".join(f"0 {x} {y}\n" for x, y in points)
    return f"OFF\n{len(points)} 1 0\n{corners}{len(points)} {' '.join(map(str, range(len(points))))}\n"


def ply(points):
    _, _, *body = off(points).splitlines()
    axes = "".join(f"property double {axis}\n" for axis in "xyz")
    return (
        f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n{axes}element face 1\n"
        "property list uchar int vertex_indices\nend_header\n" + "\n".join(body) + "\n"
    )


FILES = {
    "a.obj": obj,
    "b.obj": lambda points: "vt 0 0\nvn 1 0 0\n" + obj(points, "{0}/1/1"),
    "c.obj": lambda points: obj(points, "{1}"),
    "a.off": off,
    "a.ply": ply,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_concave_polygon_has_the_area_of_its_outline(tmp_path, shape, turned, name):
    points = SHAPES[shape][::-1] if turned else SHAPES[shape]
    (tmp_path / name).write_text(FILES[name](points), encoding="utf-8")
    mesh = read_mesh(tmp_path / name)
    a, b, c = mesh.corners.double().unbind(1)
    across = torch.linalg.cross(b - a, c - a)
    scale = float((mesh.vertices.amax(0) - mesh.vertices.amin(0)).max()) / np.ptp(points, axis=0).max()
    assert float(across.norm(dim=1).sum()) / 2 == pytest.approx(abs(area_of(points)) * scale**2, rel=1e-5)
    assert (across[:, 0] * (-1 if turned else 1) > 0).all()


def test_the_silhouette_of_a_concave_polygon_shows_its_gaps(tmp_path):
    (tmp_path / "comb.obj").write_text(obj(COMB), encoding="utf-8")
    view, still = View(height=64, width=64), torch.tensor([[1.0, 0, 0, 0]])
    mask = rasterise(read_mesh(tmp_path / "comb.obj"), still, view).masks[0, 0] > 0
    rows = mask.any(1).nonzero()
    teeth = mask[rows.min() + 2].int().diff().clamp(min=0).sum()
    assert teeth == 3


def test_files_without_concave_polygons_stay_as_they_are(tmp_path):
    square = obj([(0, 0), (2, 0), (2, 2), (0, 2)])
    for text in (square, "", "v 0 0 0\n", square + "f 1 2 3 99\n"):
        assert cut_concave(text, tmp_path) is text


def test_a_polygon_over_two_lines_is_cut(tmp_path):
    broken = obj(COMB).replace(" 7", " \\\n7")
    assert cut_concave(broken, tmp_path).count("f ") == 10


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.obj", "the polygon of line 6"), ("a.off", "face 1"), ("a.ply", "face 1")],
)
def test_a_polygon_that_crosses_itself_is_refused_with_its_place(tmp_path, name, words):
    bow = [(0, 0), (2, 2), (2, 0), (0, 3), (-1, 1)]
    (tmp_path / name).write_text(FILES[name](bow), encoding="utf-8")
    with pytest.raises(
        UserError, match=rf"{name}: {words} crosses itself or has too many corners; cut its faces"
    ):
        read_mesh(tmp_path / name)


def test_triangles_stand_in_the_order_of_their_polygons():
    corners = np.array([[x, y, 0] for x, y in [*ARROW, (0, 5), (1, 5)]], np.float64)
    mixed = [(0, 4, 5), (0, 1), (0, 1, 2, 3), (), (4, 5, 3, 2), (1, 2, 5)]
    triangles, owners = triangulate(corners, mixed, Path("a.off"))
    assert owners.tolist() == [0, 2, 2, 4, 4, 5]
    assert triangles[[0, 3, 4, 5]].tolist() == [[0, 4, 5], [4, 5, 3], [4, 3, 2], [1, 2, 5]]
    assert sorted(map(sorted, triangles[1:3].tolist())) == [[0, 1, 2], [0, 2, 3]]  # not over the gap


@pytest.mark.parametrize("corner", [-1, 4])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_corner_that_is_not_there_is_refused(corner, length):
    with pytest.raises(UserError, match="a face names a corner that is not there"):
        triangulate(np.eye(4)[:, :3], [[*range(length - 1), corner]], Path("a.off"))


def test_an_outline_that_winds_too_long_is_refused(monkeypatch):
    turn = np.linspace(0, 6 * np.pi, 40)
    arms = [[(turn + wide) * np.cos(turn), (turn + wide) * np.sin(turn), 0 * turn] for wide in (2, 1)]
    outline = np.concatenate([np.array(arms[0]).T, np.array(arms[1]).T[::-1]])
    triangles, _ = triangulate(outline, [range(80)], Path("a.off"))
    assert len(triangles) == 78
    monkeypatch.setattr(polygons, "_MOST_LOOKS", 100_000)  # 775 tries are needed, of over 1,000 each
    with pytest.raises(UserError, match="face 1 crosses itself or has too many corners"):
        triangulate(outline, [range(80)], Path("a.off"))


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("shape", SHAPES)
def test_rounding_of_places_does_not_keep_a_polygon_from_being_cut(shape, scale):
    flat = np.array(SHAPES[shape], np.float64) * scale
    for angle in np.linspace(0, 2 * np.pi, 60):  # corners on one line are no longer so
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        corners = np.pad(flat @ turn.T, ((0, 0), (0, 1)))
        triangles, _ = triangulate(corners, [range(len(flat))], Path("a.off"))
        a, b, c = corners[triangles].transpose(1, 0, 2)
        areas = np.cross(b - a, c - a)[:, 2] / 2
        assert areas.min() > -1e-8 * scale**2
        assert areas.sum() == pytest.approx(area_of(flat))
