"""Mesh files of each format are read; those that cannot be used are reported and left out."""

from contextlib import suppress

import numpy as np
import pytest
import torch

from torchcaps.apps.pose import meshes
from torchcaps.apps.pose.meshes import read_mesh, read_mesh_folder
from torchcaps.core import MissingDataError, UserError
from torchcaps.core.rotation import quaternions_of_euler
from torchcaps.data.rendering import RADIUS, View, rasterise

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed")

STILL = torch.tensor([[1.0, 0, 0, 0]])


def write(path, **kind):
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box(extents=kind.get("extents", (1, 2, 3))).export(path)
    return path


@pytest.mark.parametrize("suffix", sorted(meshes.SUFFIXES))
def test_every_format_gives_the_same_object(tmp_path, suffix):
    mesh = read_mesh(write(tmp_path / f"box{suffix}"))
    assert len(mesh.faces) == 12
    assert mesh.is_closed
    assert torch.linalg.vector_norm(mesh.vertices, dim=1).max() == pytest.approx(RADIUS)
    assert sorted((mesh.vertices.amax(0) - mesh.vertices.amin(0)).tolist()) == pytest.approx(
        [each * 2 * RADIUS / 14**0.5 for each in (1, 2, 3)], rel=1e-3
    )


def test_colours_of_faces_are_read(tmp_path):
    box = trimesh.creation.box()
    box.visual.face_colors = np.tile(np.array([255, 0, 0, 255], dtype=np.uint8), (12, 1))
    box.export(tmp_path / "red.ply")
    assert read_mesh(tmp_path / "red.ply").colours.tolist() == [[1, 0, 0]] * 12


def test_colours_of_a_file_are_those_of_a_screen(tmp_path):
    box = trimesh.creation.box()
    box.visual.face_colors = np.tile(np.array([188, 119, 5, 255], dtype=np.uint8), (12, 1))
    box.export(tmp_path / "brown.ply")
    half_fifth_none = [0.503, 0.184, 5 / 255 / 12.92]  # of the light (IEC 61966-2-1)
    assert read_mesh(tmp_path / "brown.ply").colours[0].tolist() == pytest.approx(half_fifth_none, abs=1e-3)


def test_a_face_without_area_does_not_move_or_shrink_an_object(tmp_path):
    box = trimesh.creation.box(extents=(1, 2, 3))
    spike = np.array([[0, 0, 0], [4, 0, 0], [9, 0, 0]])
    corners, faces = np.vstack([box.vertices, spike]), np.vstack([box.faces, [[8, 9, 10]]])
    trimesh.Trimesh(corners, faces, process=False).export(tmp_path / "spike.ply")
    mesh, plain = read_mesh(tmp_path / "spike.ply"), read_mesh(write(tmp_path / "box.ply"))
    assert mesh.is_closed
    assert len(mesh.faces) == 12
    torch.testing.assert_close(mesh.vertices, plain.vertices)


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e12])
def test_the_unit_of_a_mesh_does_not_change_the_object(tmp_path, scale):
    ball = trimesh.creation.icosphere(subdivisions=2)
    ball.export(tmp_path / "ball.obj", digits=20)
    ball.apply_scale(scale)
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in ball.vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (ball.faces + 1).tolist()]
    (tmp_path / "other.obj").write_text("\n".join(lines))
    mesh, plain = read_mesh(tmp_path / "other.obj"), read_mesh(tmp_path / "ball.obj")
    assert mesh.is_closed
    torch.testing.assert_close(mesh.vertices, plain.vertices)


def test_a_mesh_with_a_hole_is_seen_from_both_sides(tmp_path):
    box = trimesh.creation.box()
    box.update_faces(np.arange(12) > 1)
    box.export(tmp_path / "open.obj")
    mesh = read_mesh(tmp_path / "open.obj")
    assert not mesh.is_closed
    assert rasterise(mesh, STILL, View(height=16, width=16)).masks.any()


@pytest.mark.parametrize("turned", [slice(None), slice(0, 4)], ids=["inside out", "some faces turned"])
def test_a_mesh_that_does_not_tell_its_outside_is_seen_from_both_sides(tmp_path, turned):
    box = trimesh.creation.box()
    faces = np.array(box.faces)
    faces[turned] = faces[turned, ::-1]
    trimesh.Trimesh(box.vertices, faces, process=False).export(tmp_path / "odd.obj")
    whole, odd = read_mesh(write(tmp_path / "box.obj", extents=(1, 1, 1))), read_mesh(tmp_path / "odd.obj")
    assert (whole.is_closed, odd.is_closed) == (True, False)
    turns, view = quaternions_of_euler(torch.tensor([[20.0, 30.0, 40.0]])), View(height=16, width=16)
    assert torch.equal(rasterise(odd, turns, view).images, rasterise(whole, turns, view).images)


def test_a_mesh_whose_edges_have_three_faces_is_rendered(tmp_path):
    (tmp_path / "fin.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 -1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 2 5\n", encoding="utf-8"
    )
    mesh = read_mesh(tmp_path / "fin.obj")
    assert not mesh.is_closed
    turned = quaternions_of_euler(torch.tensor([[0.0, 40, 20]]))
    assert rasterise(mesh, turned, View(height=16, width=16)).masks.any()


def test_a_mesh_far_from_its_origin_keeps_its_shape(tmp_path):
    box = trimesh.creation.box((1, 2, 3))
    box.apply_translation((1e7, 0, 0))
    box.export(tmp_path / "far.obj")
    sides = read_mesh(tmp_path / "far.obj").vertices
    expected = torch.tensor([1.0, 2, 3]) * 2 * RADIUS / 14**0.5
    torch.testing.assert_close(sides.amax(0) - sides.amin(0), expected)


PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
"""
BAD = {
    "beyond.ply": (f"{PLY}3 0 1 9\n", "a corner that is not there"),
    "negative.ply": (f"{PLY}3 0 1 -1\n", "a corner that is not there"),
    "nan.obj": ("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
    "flat.obj": ("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "no area"),
    "point.obj": ("v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n", "no area|no faces"),
    "empty.obj": ("", "no faces|empty"),
    "cloud.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\n", "no faces|empty"),
    "two.obj": ("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "corners have 2 coordinates"),
    "far.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 9e9\nf 1 2 3\nf 1 4 4\n", "no area"),
    "short.ply": (f"{PLY}3 0 1 2\n".replace("face 1", "face 2"), "ends too early"),
    "short.off": ("OFF # box\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "ends too early"),
    "damaged.glb": ("this is no mesh", "damaged"),
    "damaged.stl": ("solid nothing", "damaged|no faces"),
    "text.txt": ("hello", "no mesh file"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_used_are_one_line(tmp_path, name):
    text, words = BAD[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words) as caught:
        read_mesh(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e200])
def test_a_mesh_too_large_or_small_for_its_numbers_is_refused(tmp_path, scale):
    corners = "".join(f"v {x * scale} {y * scale} 0\n" for x, y in ((0, 0), (1, 0), (0, 1)))
    (tmp_path / "a.obj").write_text(f"{corners}f 1 2 3\n")
    with pytest.raises(UserError, match=r"from its origin .*: scale it"):
        read_mesh(tmp_path / "a.obj")


def test_a_mesh_of_too_many_faces_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(meshes, "MOST_FACES", 11)
    with pytest.raises(UserError, match="12 faces; simplify it to at most 11"):
        read_mesh(write(tmp_path / "box.ply"))


def test_a_file_that_is_too_large_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(meshes, "_MOST_BYTES", 10)
    with pytest.raises(UserError, match="simplify it"):
        read_mesh(write(tmp_path / "box.ply"))


def test_a_mesh_file_opens_no_other_file(tmp_path):
    (tmp_path / "secret.mtl").write_text("newmtl a\nKd 1 0 0\n", encoding="utf-8")
    (tmp_path / "box.obj").write_text(
        "mtllib secret.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", encoding="utf-8"
    )
    assert read_mesh(tmp_path / "box.obj").colours.unique().tolist() == pytest.approx([0.8])


def test_a_folder_of_classes_leaves_out_what_cannot_be_used(tmp_path):
    for name in ("b/one.obj", "a/two.stl", "a/three.ply"):
        write(tmp_path / name)
    (tmp_path / "a" / "broken.obj").write_text("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", encoding="utf-8")
    told = []
    found = read_mesh_folder(tmp_path, report=told.append)
    assert found.classes == ("a", "b")
    assert [each.name for each in found.objects] == ["a/three", "a/two", "b/one"]
    assert len(told) == 1
    assert "broken.obj" in told[0]
    few = read_mesh_folder(tmp_path, ("b", "a"), most=1, report=told.append)
    assert [each.name for each in few.objects] == ["b/one", "a/three"]


def test_a_name_stands_for_one_mesh_and_hidden_folders_are_no_classes(tmp_path):
    for name in ("a/one.obj", "a/one.stl", "b/one.ply"):
        write(tmp_path / name)
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / ".git").mkdir()
    told = []
    found = read_mesh_folder(tmp_path, report=told.append)
    assert found.classes == ("a", "b")
    assert [each.name for each in found.objects] == ["a/one", "b/one"]
    assert len(told) == 1
    assert "one.stl has the name of another mesh" in told[0]


def test_folders_that_are_missing_or_elsewhere_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(MissingDataError, match="no mesh that can be used"):
        read_mesh_folder(tmp_path, report=print)
    with pytest.raises(MissingDataError, match="is not a folder"):
        read_mesh_folder(tmp_path / "none", report=print)
    with pytest.raises(UserError, match="not the name of a class folder"):
        read_mesh_folder(tmp_path / "a", ("../a",), report=print)


@pytest.mark.parametrize("number", ["nan", "1e400", "x"])
def test_a_damaged_stl_file_is_one_line_without_a_log(tmp_path, number, recwarn, capfd):
    import trimesh

    text = trimesh.exchange.stl.export_stl_ascii(trimesh.creation.box())
    for place in (20, 200):  # in a normal, and in a corner
        start = next(at for at in range(place, len(text)) if text[at].isdigit())
        (tmp_path / "a.stl").write_text(text[:start] + f" {number} " + text[start + 1 :])
        with suppress(UserError):  # normals are not needed
            meshes.read_mesh(tmp_path / "a.stl")
    assert not recwarn.list
    assert capfd.readouterr().err == ""
