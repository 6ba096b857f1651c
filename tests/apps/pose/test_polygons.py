"""Concave polygons of OBJ files are cut into triangles that fill them."""

import numpy as np
import pytest
import torch

from torchcaps.apps.pose.meshes import read_mesh
from torchcaps.apps.pose.polygons import cut_concave
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


@pytest.mark.parametrize("words", ["{0}", "{0}/1/1", "{1}"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_concave_polygon_has_the_area_of_its_outline(tmp_path, shape, turned, words):
    points = SHAPES[shape][::-1] if turned else SHAPES[shape]
    head = "vt 0 0\nvn 1 0 0\n"
    (tmp_path / "a.obj").write_text(head + obj(points, words), encoding="utf-8")
    mesh = read_mesh(tmp_path / "a.obj")
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


def test_a_polygon_that_crosses_itself_is_refused_with_its_line(tmp_path):
    (tmp_path / "bow.obj").write_text(obj([(0, 0), (2, 2), (2, 0), (0, 3), (-1, 1)]), encoding="utf-8")
    with pytest.raises(UserError, match=r"bow.obj: the polygon of line 6 crosses itself; cut its faces"):
        read_mesh(tmp_path / "bow.obj")
