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


OFF_CORNERS = "".join(f"{x} {y} {z}\n" for x, y, z in CORNERS)
OFF_FACES = "".join(" ".join(map(str, (len(face), *face))) + "\n" for face in MIXED)
TEXT = ply("ascii", MIXED, RED_AND_BLUE).decode()
BINARY = ply("binary_little_endian", MIXED)


@pytest.mark.parametrize(
    ("kind", "more"), [("ST", " 0 1"), ("C", " 1 0 0 1"), ("N", " 0 0 1"), ("\ufeff", "")]
)
def test_what_off_says_of_corners_beside_their_places_is_left_out(tmp_path, kind, more):
    corners = OFF_CORNERS.replace("\n", f"{more}\n")
    (tmp_path / "cube.off").write_text(f"{kind}OFF\n8 7 0\n{corners}{OFF_FACES}", encoding="utf-8")
    assert read_mesh(tmp_path / "cube.off").is_closed


def test_a_comment_of_off_may_come_first_and_name_it(tmp_path):
    (tmp_path / "cube.off").write_text(f"# an OFF file\n\nOFF\n8 7 0\n{OFF_CORNERS}{OFF_FACES}")
    assert read_mesh(tmp_path / "cube.off").is_closed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"4OFF\n8 7 0\n{OFF_CORNERS}{OFF_FACES}", "does not begin with OFF"),
        (f"OFF\n8 6 0\n{OFF_CORNERS}{OFF_FACES}", "more than it says"),
        (f"OFF\n8 -1 0\n{OFF_CORNERS}{OFF_FACES}", "fewer than no corners or faces"),
        (f"OFF\n-8 23 0\n{OFF_CORNERS}{OFF_FACES}", "fewer than no corners or faces"),
        (f"OFF\n8 7 0\n{OFF_CORNERS}{OFF_FACES.replace('3 1 5 7', '4 1 5 7')}", "fewer corners than it says"),
        (
            f"OFF\n8 7 0\n{OFF_CORNERS}{OFF_FACES.replace('3 1 5 7', '-3 1 5 7')}",
            "fewer corners than it says",
        ),
    ],
)
def test_an_off_file_that_contradicts_itself_is_refused(tmp_path, text, problem):
    (tmp_path / "cube.off").write_text(text)
    with pytest.raises(UserError, match=problem):
        read_mesh(tmp_path / "cube.off")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_the_lines_of_a_header_may_end_in_other_ways(tmp_path, end):
    start = BINARY.index(b"end_header\n") + len(b"end_header\n")
    head = BINARY[:start].replace(b"made by hand", b"end_header comes later").replace(b"\n", end.encode())
    (tmp_path / "cube.ply").write_bytes(head.replace(b"comment", b"obj_info") + BINARY[start:] + b"\n")
    assert read_mesh(tmp_path / "cube.ply").is_closed


def test_a_body_may_begin_with_the_end_of_a_line(tmp_path):
    head = "ply\rformat binary_little_endian 1.0\relement vertex 3\rproperty uchar x\rproperty uchar y\r"
    head += "property uchar z\relement face 1\rproperty list char char vertex_index\rend_header\r"
    (tmp_path / "a.ply").write_bytes(head.encode() + bytes([10, 0, 0, 13, 32, 0, 0, 9, 1, 3, 0, 1, 2]))
    found = read_ply(tmp_path / "a.ply")
    assert found.corners.tolist() == [[10, 0, 0], [13, 32, 0], [0, 9, 1]]
    assert np.array(found.polygons).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("element face 7", "element face 6", "more than it says"),
        ("element face 7", "element face -7", "line 'element face -7'"),
        ("property uchar red", "propurty uchar red", "line 'propurty uchar red'"),
        ("format ascii", "format asci", "line 'format asci 1.0'"),
        ("format ascii 1.0\n", "", "no format"),
        ("uchar quality", "uchar x", "something twice"),
        ("element face", "element vertex", "something twice"),
        ("float y", "float yy", "no y"),
        ("float y", "flaot y", "property 'flaot y'"),
        ("list uchar int", "list float int", "property 'list float int vertex_indices'"),
        ("list uchar int", "list uchar float", "property 'list uchar float vertex_indices'"),
        ("3 1 5 7", "3 1 5.5 7", "not of the type"),
        ("0 0 0 9", "0 0 0 256", "not of the type"),
        ("0 0 0 9", "0 0 0 nan", "not of the type"),
        ("ply\n", "plx\n", "no header"),
        ("end_header", "end_heade", "no header"),
    ],
)
def test_a_ply_file_that_contradicts_itself_is_refused(tmp_path, old, new, problem):
    assert old in TEXT
    (tmp_path / "cube.ply").write_text(TEXT.replace(old, new, 1))
    with pytest.raises(UserError, match=problem):
        read_mesh(tmp_path / "cube.ply")


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian"])
def test_a_list_of_fewer_than_no_values_is_refused_at_once(tmp_path, form):
    head = ply(form, [(0, 1, 2)]).replace(b"uchar int", b"char int").replace(b"face 1", b"face 999999999999")
    tail = b"-1 " if form == "ascii" else b"\xff"
    (tmp_path / "cube.ply").write_bytes(head + tail)
    with pytest.raises(UserError, match="a list has fewer than no values"):
        read_mesh(tmp_path / "cube.ply")


def test_more_bytes_than_a_header_names_are_refused(tmp_path):
    (tmp_path / "cube.ply").write_bytes(BINARY + b"\0")
    with pytest.raises(UserError, match="more than it says"):
        read_mesh(tmp_path / "cube.ply")


@pytest.mark.parametrize(("value", "byte"), [("0.5", 128), ("1", 255), ("7", 255), ("-1", 0)])
def test_colours_may_be_shares_and_have_an_alpha(tmp_path, value, byte):
    painted = TEXT.replace("uchar red", "float red").replace("uchar blue", "uchar blue\nproperty uchar alpha")
    painted = painted.replace("255 0 0", f"{value} 0 0 40").replace("0 0 255", f"{value} 0 0 40")
    (tmp_path / "cube.ply").write_text(painted)
    assert read_ply(tmp_path / "cube.ply").face_colours.tolist() == [[byte, 0, 0]] * 7
    (tmp_path / "cube.ply").write_text(painted.replace(f"{value} 0 0 40", "nan 0 0 40"))
    with pytest.raises(UserError, match="colours that are not finite"):
        read_mesh(tmp_path / "cube.ply")
