"""The rasteriser against rays, against itself by another path, and against what is known of solids."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import MissingDataError, UserError
from torchcaps.core.rotation import quaternions_of_euler, random_rotations, rotation_matrices
from torchcaps.data.rendering import (
    RADIUS,
    Camera,
    Light,
    Mesh,
    MeshSet,
    NamedMesh,
    View,
    cube,
    cube_tetrahedron,
    load_meshes,
    rasterise,
    save_meshes,
    tetrahedron,
)
from torchcaps.data.rendering.spans import spans_of

SMALL = View(height=24, width=32)
ROTATIONS = random_rotations(6, torch.Generator().manual_seed(3))
STILL = torch.tensor([[1.0, 0, 0, 0]])


def traced(mesh, rotation, view):
    """For each pixel the triangle that the ray through its middle meets first, -1 for none; in float64."""
    corners = mesh.corners.double() @ rotation_matrices(rotation.double()).T
    origin = torch.tensor(view.camera.position, dtype=torch.float64)
    rows, columns = torch.meshgrid(torch.arange(view.height), torch.arange(view.width), indexing="ij")
    middles = torch.stack((columns + 0.5, rows + 0.5, torch.ones_like(rows)), dim=-1).double()
    rays = middles @ torch.linalg.inv(view.matrix()[:, :3]).T  # (height, width, 3)
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    across = torch.linalg.cross(rays[..., None, :].expand(*rays.shape[:2], len(a), 3), ac.expand(1, 1, -1, 3))
    det = (across * ab).sum(-1)
    from_a = origin - a
    u = (across * from_a).sum(-1) / det
    other = torch.linalg.cross(from_a, ab)
    v = (rays[..., None, :] * other).sum(-1) / det
    distance = (ac * other).sum(-1) / det
    is_met = (u >= 0) & (v >= 0) & (u + v <= 1) & (distance > 0)
    distance = distance.where(is_met, math.inf)
    return distance.argmin(-1).where(is_met.any(-1), -1)


@pytest.mark.parametrize("mesh", [cube(), tetrahedron(), cube(borders=False)], ids=["cube", "tetra", "plain"])
@pytest.mark.parametrize("is_convex", [True, False])
def test_every_pixel_shows_the_triangle_that_its_ray_meets_first(mesh, is_convex):
    number = torch.arange(len(mesh.faces))
    mesh = mesh._replace(  # colours that tell triangles apart whatever the light
        colours=torch.stack((number % 5, number // 5 % 5, number // 25), dim=1) / 5 + 0.15,
        is_convex=is_convex,
        is_closed=is_convex,
    )
    view = replace(SMALL, lights=(), ambient=1.0)
    found = rasterise(mesh, ROTATIONS, view)
    for image, mask, rotation in zip(*found, ROTATIONS, strict=True):
        expected = traced(mesh, rotation, view)
        assert ((mask[0] > 0) != (expected >= 0)).sum() <= 1  # a ray along an edge
        linear = image.permute(1, 2, 0).float() / 255
        linear = torch.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4)
        shown = torch.cdist(linear.flatten(0, 1), mesh.colours).argmin(-1).view(expected.shape)
        both = (expected >= 0) & (mask[0] > 0)
        assert (shown[both] != expected[both]).sum() <= 1


@pytest.mark.parametrize("solid", [cube, tetrahedron])
def test_a_face_shows_as_much_of_its_colour_as_of_those_of_its_neighbours(solid):
    mesh = solid()
    a, b, c = mesh.corners.unbind(1)
    upright = torch.linalg.cross(b - a, c - a)
    areas, normals = upright.norm(dim=1) / 2, upright / upright.norm(dim=1, keepdim=True)
    on_face = normals @ normals[0] > 0.99
    colours, of_colour = mesh.colours[on_face].unique(dim=0, return_inverse=True)
    shares = torch.zeros(len(colours)).index_add_(0, of_colour, areas[on_face]) / areas[on_face].sum()
    assert len(colours) == (5 if solid is cube else 4)  # its own, and one for each edge
    assert shares.max().item() == pytest.approx(0.5, abs=0.05)


def test_convex_objects_look_the_same_with_and_without_a_depth_buffer():
    for mesh in (cube(), tetrahedron()):
        fast = rasterise(mesh, ROTATIONS, SMALL)
        slow = rasterise(mesh._replace(is_convex=False), ROTATIONS, SMALL)
        assert torch.equal(fast.images, slow.images)
        assert torch.equal(fast.masks, slow.masks)


def test_the_camera_looks_along_x_with_y_to_the_right_and_z_upwards():
    column, row, depth = View().matrix() @ torch.tensor([0.0, 0.5, 0.25, 1], dtype=torch.float64)
    assert depth == 4
    assert column / depth > 64
    assert row / depth < 64
    assert_close(
        (View().matrix() @ torch.tensor([1.0, 0, 0, 1]).double())[:2] / 3, torch.tensor([64.0, 64]).double()
    )


def test_a_cube_seen_from_the_front_has_the_size_that_its_lens_gives():
    mask = rasterise(cube(), STILL, View()).masks[0, 0] > 0
    half = RADIUS / math.sqrt(3)
    focal = 64 / math.tan(math.radians(View().camera.field_of_view / 2))
    side = 2 * focal * half / (4 - half)
    assert mask.any(0).sum() == pytest.approx(side, abs=1)
    assert mask.sum() == pytest.approx(side**2, rel=0.03)


def test_rotations_turn_the_object_as_their_matrices_do():
    quarter = quaternions_of_euler(torch.tensor([[90.0, 0, 0]]))
    by_rotation = rasterise(tetrahedron(), quarter, SMALL)
    by_hand = rasterise(tetrahedron().turned(rotation_matrices(quarter)[0]), STILL, SMALL)
    assert (by_rotation.images != by_hand.images).float().mean() < 0.005  # middles on an edge


def test_brightness_follows_lambert_and_the_square_of_the_distance():
    def brightness(position, energy=100.0):
        view = View(height=9, width=9, lights=(Light(position=position, energy=energy),), ambient=0.0)
        value = rasterise(cube(borders=False), STILL, view).images[0, 0, 4, 4].item() / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    near = RADIUS / math.sqrt(3)
    centre = (near, near / 3, -near / 3)  # of the triangle in the middle, or of the one beside it
    above = brightness((near + 3, *centre[1:]))
    assert above == pytest.approx(0.8 * 100 / (4 * math.pi**2 * 9), rel=0.06)
    assert brightness((near + 6, *centre[1:])) == pytest.approx(above / 4, rel=0.08)
    assert brightness((-5.0, 0.0, 0.0)) == 0  # behind


def test_a_moved_view_takes_its_lights_along():
    by = (0.4, -0.3, 0.2)
    moved = cube()._replace(vertices=cube().vertices + torch.tensor(by))
    still = rasterise(cube(), STILL, SMALL).images.int()
    carried = rasterise(moved, STILL, SMALL.moved(by)).images.int()
    assert ((still - carried).abs() > 1).float().mean() < 0.005  # middles on an edge


def test_a_moved_view_moves_the_object_the_other_way():
    mask = rasterise(cube(), STILL, View().moved((0.0, 0.0, -0.3))).masks[0, 0] > 0
    rows = mask.any(1).nonzero()
    assert rows.float().mean() < 50  # upwards


@pytest.mark.parametrize(("height", "width"), [(48, 64), (64, 48), (48, 48)])
def test_a_cropped_view_is_the_middle_of_the_whole_one(height, width):
    view = View(height=height, width=width)
    rotations = random_rotations(4, torch.Generator().manual_seed(0))
    whole, middle = (rasterise(cube(), rotations, each).images for each in (view, view.cropped(48, 48)))
    top, left = (height - 48) // 2, (width - 48) // 2
    is_other = (whole[:, :, top : top + 48, left : left + 48] != middle).any(1)
    assert is_other.float().mean() < 0.002  # edges that pass through the middle of a pixel


def test_what_leaves_the_image_is_cut_off():
    close = replace(SMALL, camera=Camera(position=(1.6, 0.2, 0.0)))
    assert rasterise(cube(), ROTATIONS, close).masks.float().mean() > 200
    assert not rasterise(cube(), STILL, SMALL.moved((0.0, 50.0, 0.0))).masks.any()


def test_the_background_has_its_colour_outside_of_the_mask():
    view = replace(SMALL, background=(1.0, 0.0, 0.4))
    for mesh in (cube(), cube()._replace(is_convex=False)):
        image, mask = (each[0] for each in rasterise(mesh, STILL, view))
        outside = image[:, mask[0] == 0]
        assert (outside == torch.tensor([[255], [0], [102]])).all()


def test_the_result_does_not_depend_on_the_size_of_the_batch():
    whole = rasterise(cube(), ROTATIONS, SMALL).images
    assert torch.equal(whole, torch.cat([rasterise(cube(), q[None], SMALL).images for q in ROTATIONS]))


def test_spans_cover_the_pixels_whose_middles_lie_inside():
    a = torch.rand(40, 3, 2) * 30 - 3
    spans = spans_of(a, 24, 24)
    covered = torch.zeros(40, 24, 24)
    for owner, row, start, end in zip(*(each.tolist() for each in spans), strict=True):
        covered[owner, row, start:end] += 1
    middles = torch.stack(
        torch.meshgrid(torch.arange(24) + 0.5, torch.arange(24) + 0.5, indexing="xy"), dim=-1
    )
    p, q, r = (corner[:, None, None] for corner in a.double().unbind(1))

    def side(u, v):
        return (v - u)[..., 0] * (middles - u)[..., 1] - (v - u)[..., 1] * (middles - u)[..., 0]

    signs = torch.stack((side(p, q), side(q, r), side(r, p)))
    inside = (signs > 0).all(0) | (signs < 0).all(0)
    assert ((covered > 0) != inside).sum() <= 2
    assert covered.max() <= 1


def test_triangles_of_one_edge_share_no_pixel_and_leave_none_out():
    middle = torch.rand(30, 1, 2) * 10 + 7
    angles = ((torch.arange(7) + 0.6 * torch.rand(30, 7)) * 2 * math.pi / 7)[..., None]
    ring = middle + 60 * torch.cat((angles.cos(), angles.sin()), dim=-1)
    fans = torch.stack((middle.expand_as(ring), ring, ring.roll(-1, 1)), dim=2)
    spans = spans_of(fans.flatten(0, 1), 24, 24)
    covered = torch.zeros(30, 24, 24)
    for owner, row, start, end in zip(*(each.tolist() for each in spans), strict=True):
        covered[owner // 7, row, start:end] += 1
    assert (covered == 1).all()


def test_a_border_tells_turns_apart_that_plain_faces_hide():
    turns = quaternions_of_euler(torch.tensor([[0.0, 0, 0], [90.0, 0, 0]]))
    dark = replace(SMALL, lights=(), ambient=1.0)
    plain = rasterise(cube(borders=False), turns, dark).images.int()
    bordered = rasterise(cube(), turns, dark).images.int()
    assert ((plain[0] - plain[1]).abs() > 0).float().mean() < 0.01
    assert ((bordered[0] - bordered[1]).abs() > 0).float().mean() > 0.05


def test_archives_give_back_the_meshes(tmp_path):
    save_meshes(tmp_path / "meshes.npz", cube_tetrahedron())
    found = load_meshes(tmp_path / "meshes.npz")
    assert found.classes == ("cube", "tetrahedron")
    for mine, theirs in zip(found.objects, cube_tetrahedron().objects, strict=True):
        assert mine.name == theirs.name
        assert mine.label == theirs.label
        assert mine.mesh.is_closed
        assert_close(mine.mesh.vertices, theirs.mesh.vertices)
        assert torch.equal(mine.mesh.faces, theirs.mesh.faces)
        assert_close(mine.mesh.colours, theirs.mesh.colours, atol=0.003, rtol=0)


def test_objects_keep_their_classes_in_another_order():
    solids, turned = cube_tetrahedron(), cube_tetrahedron().in_order(("tetrahedron", "cube"))
    assert turned.classes == ("tetrahedron", "cube")
    assert [turned.classes[each.label] for each in turned.objects] == ["cube", "tetrahedron"]
    assert torch.equal(turned.of_class(1)[0].vertices, solids.of_class(0)[0].vertices)


def test_an_archive_that_is_damaged_or_missing_is_one_line(tmp_path):
    with pytest.raises(MissingDataError, match="--meshes-only"):
        load_meshes(tmp_path / "meshes.npz")
    (tmp_path / "meshes.npz").write_bytes(b"no archive")
    with pytest.raises(UserError, match="is no archive of meshes"):
        load_meshes(tmp_path / "meshes.npz")
    wrong = cube()._replace(faces=cube().faces + 100)
    save_meshes(tmp_path / "meshes.npz", MeshSet(("a",), (NamedMesh("a", 0, wrong),)))
    with pytest.raises(UserError, match="names a corner that is not there"):
        load_meshes(tmp_path / "meshes.npz")
    wrong = cube()._replace(vertices=cube().vertices / 0)
    save_meshes(tmp_path / "meshes.npz", MeshSet(("a",), (NamedMesh("a", 0, wrong),)))
    with pytest.raises(UserError, match="is not finite"):
        load_meshes(tmp_path / "meshes.npz")
    save_meshes(tmp_path / "meshes.npz", MeshSet(("a",), (NamedMesh("a", 1, cube()),)))
    with pytest.raises(UserError, match="of a class that is not there"):
        load_meshes(tmp_path / "meshes.npz")


@pytest.mark.parametrize("place", range(60, 140, 20))  # within the first compressed array
def test_an_archive_with_changed_bytes_is_one_line(tmp_path, place):
    path = tmp_path / "meshes.npz"
    save_meshes(path, MeshSet(("a",), (NamedMesh("a", 0, cube()),)))
    content = path.read_bytes()
    path.write_bytes(
        content[:place] + bytes(255 - byte for byte in content[place : place + 20]) + content[place + 20 :]
    )
    with pytest.raises(UserError, match="is no archive of meshes"):
        load_meshes(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vertices": np.array(["a"])},
        {"faces": np.zeros((1, 1, 0, 4), np.uint8)},
        {"faces": np.zeros((12, 0), np.int32)},
        {"colours": np.zeros((2, 3), np.uint8)},  # of twelve faces
        {"labels": np.array([0.5])},
        {"vertex_ends": np.array([np.nan])},
        {"face_ends": np.array([5])},
        {"is_closed": np.array(True)},
        {"names": np.array(5)},
        {"classes": np.array([np.nan])},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_archive_with_an_array_of_another_form_is_one_line(tmp_path, wrong):
    path = tmp_path / "meshes.npz"
    save_meshes(path, MeshSet(("a",), (NamedMesh("a", 0, cube()),)))
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, **wrong})
    with pytest.raises(UserError, match="is no archive of meshes") as raised:
        load_meshes(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Camera(position=(0.0, 0.0, 0.0)), "must differ"),
        (lambda: Camera(position=(0.0, 0.0, 4.0)), "must not point along the view"),
        (lambda: Camera(field_of_view=180.0), "between 0 and 180"),
        (lambda: View(height=0), "1 to 4,096 pixels"),
        (lambda: View(background=(2.0, 0.0, 0.0)), "between 0 and 1"),
        (lambda: View(ambient=-1.0), "ambient must not be negative"),
        (lambda: Light(position=(1.0, 0.0, 0.0), energy=-5.0), "energy and colour must not be negative"),
        (lambda: Light(position=(1.0, 0.0, 0.0), colour=(-1.0, 0.0, 0.0)), "must not be negative"),
    ],
)
def test_views_that_show_nothing_or_take_light_are_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()


def test_normalised_meshes_touch_their_sphere():
    far = cube()._replace(vertices=cube().vertices * 7 + 100)
    assert torch.linalg.vector_norm(far.normalised().vertices, dim=1).max() == pytest.approx(RADIUS)


def test_normalised_meshes_have_their_box_around_the_origin():
    crowded = torch.tensor([[0.0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 2], [0.1, 0, 0], [0, 0.1, 0]])
    mesh = cube()._replace(vertices=crowded, faces=torch.tensor([[0, 1, 2], [0, 2, 3], [0, 4, 5]]))
    found = mesh.normalised().vertices
    assert_close(found.amin(0), -found.amax(0))


def triangle(x):
    """A triangle at a distance along x, seen from both sides."""
    corners = torch.tensor([[x, -1.0, -1], [x, 1, -1], [x, 0, 2]])  # their middle lies on the axis
    return Mesh(corners, torch.tensor([[0, 1, 2]]), torch.full((1, 3), 0.8))


def test_what_is_behind_the_camera_is_not_seen():
    assert rasterise(triangle(1.0), STILL, SMALL).masks.any()
    assert not rasterise(triangle(8.0), STILL, SMALL).masks.any()  # the camera stands at 4


def test_a_triangle_that_reaches_behind_the_camera_is_not_seen():
    tilted = triangle(1.0)
    tilted.vertices[:2, 2] = 0.0
    for tip, is_seen in ((3.0, True), (5.0, False)):
        tilted.vertices[2, 0] = tip
        assert bool(rasterise(tilted, STILL, SMALL).masks.any()) == is_seen


def encoded(linear):
    """Light as bytes of a screen (IEC 61966-2-1)."""
    return 255 * (12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("ambient", [0.0005, 0.002, 0.003, 0.004, 0.05, 0.7])
def test_light_is_encoded_as_screens_do_also_where_it_is_dark(ambient):
    white = triangle(1.0)._replace(colours=torch.ones(1, 3))
    view = replace(SMALL, lights=(), ambient=ambient)
    assert int(rasterise(white, STILL, view).images.max()) == pytest.approx(encoded(ambient), abs=0.7)


@pytest.mark.parametrize("distance", [0.25, 0.5, 2.0])
def test_a_coloured_light_near_a_triangle_gives_its_colour_by_the_square_of_the_distance(distance):
    """A light of P watts straight before the middle gives P / (4 pi^2 d^2) of each colour."""
    light = Light(position=(1.0 + distance, 0.0, 0.0), energy=10 * distance**2, colour=(1.0, 0.5, 0.0))
    white = triangle(1.0)._replace(colours=torch.ones(1, 3))
    images = rasterise(white, STILL, replace(SMALL, lights=(light,), ambient=0.01)).images
    received = [10 / (4 * math.pi**2) * share + 0.01 for share in light.colour]
    found = images[0].amax((1, 2)).tolist()
    assert found == pytest.approx([encoded(each) for each in received], abs=0.7)


def test_both_sides_of_an_open_mesh_are_lit_by_the_lights_before_them():
    one = triangle(1.0)
    other = one._replace(faces=one.faces.flip(1))
    lights = [(Light(position=(x, 0.5, 0.5)),) for x in (3.0, -3.0)]
    before, behind = (replace(SMALL, lights=each, ambient=0.0) for each in lights)
    for mesh in (one, other):
        assert rasterise(mesh, STILL, before).images.max() > 50
        assert rasterise(mesh, STILL, behind).images.max() == 0
    assert torch.equal(rasterise(one, STILL, before).images, rasterise(other, STILL, before).images)


def test_a_light_on_a_triangle_gives_it_a_colour():
    view = replace(SMALL, lights=(Light(position=(1.0, 0.0, 0.0)),), ambient=0.5)
    dark = replace(SMALL, lights=(), ambient=0.5)
    assert torch.equal(
        rasterise(triangle(1.0), STILL, view).images, rasterise(triangle(1.0), STILL, dark).images
    )
