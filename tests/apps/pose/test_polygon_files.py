"""OFF and PLY files with polygons of several lengths are read, as text and binary."""

import struct

import numpy as np
import pytest

from torchcaps.apps.pose.meshes import read_mesh
from torchcaps.apps.pose.polygon_files import read_off, read_ply
from torchcaps.core import UserError

pytest.importorskip("trimesh", reason="trimesh is not installed")

CORNERS = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
MIXED = [*QUADS[:5], (1, 5, 7), (1, 7, 3)]
RED_AND_BLUE = [(255, 0, 0)] * 5 + [(0, 0, 255)] * 2


def ply(form, faces, colours=None):
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[form]
    painted = "".join(f"property uchar {name}\n" for name in ("red", "green", "blue")) if colours else ""
    head = (
        f"ply\nformat {form} 1.0\ncomment made by hand\nelement vertex {len(CORNERS)}\n"
        "property float x\nproperty float y\nproperty float z\nproperty uchar quality\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\n{painted}end_header\n"
    ).encode()
    rows = [("3fB", (*corner, 9)) for corner in CORNERS]
    for face, colour in zip(faces, colours or [()] * len(faces), strict=True):
        rows.append((f"B{len(face)}i{len(colour)}B", (len(face), *face, *colour)))
    if not order:
        return head + "".join(" ".join(map(str, values)) + "\n" for _, values in rows).encode()
    return head + b"".join(struct.pack(order + kinds, *values) for kinds, values in rows)


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("faces", [QUADS, MIXED])
def test_a_cube_of_polygons_is_closed_in_every_form_of_ply(tmp_path, form, faces):
    (tmp_path / "cube.ply").write_bytes(ply(form, faces))
    assert [tuple(face) for face in read_ply(tmp_path / "cube.ply").polygons] == list(map(tuple, faces))
    mesh = read_mesh(tmp_path / "cube.ply")
    assert len(mesh.faces) == 12
    assert mesh.is_closed


def test_both_triangles_of_a_quad_have_its_colour(tmp_path):
    (tmp_path / "cube.ply").write_bytes(ply("binary_little_endian", MIXED, RED_AND_BLUE))
    colours = read_mesh(tmp_path / "cube.ply").colours
    assert colours.tolist() == [[1, 0, 0]] * 10 + [[0, 0, 1]] * 2


def test_counts_may_follow_off_at_once_and_comments_are_left_out(tmp_path):
    lines = [f"{x} {y} {z} # a corner" for x, y, z in CORNERS]
    lines += [" ".join(map(str, (len(face), *face, 200, 10, 10))) for face in MIXED]  # and a colour
    (tmp_path / "cube.off").write_text("OFF8 7 0\n\n" + "\n".join(lines))
    found = read_off(tmp_path / "cube.off")
    assert found.polygons == [list(face) for face in MIXED]
    assert np.array_equal(found.corners, CORNERS)
    assert read_mesh(tmp_path / "cube.off").is_closed


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian"])
@pytest.mark.parametrize("faces", [QUADS, MIXED])
def test_a_file_that_ends_too_early_is_refused(tmp_path, form, faces):
    (tmp_path / "cube.ply").write_bytes(ply(form, faces)[:-3])
    (tmp_path / "cube.off").write_text("OFF\n8 6 0\n" + "0 0 0\n" * 10)
    for name in ("cube.ply", "cube.off"):
        with pytest.raises(UserError, match=rf"{name} is damaged or empty .it ends too early"):
            read_mesh(tmp_path / name)
