"""Quaternions against SciPy's rotations, written by others, and symmetry groups against their definition."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.rotation import (
    axial_mean,
    distinct_numbers,
    euler_grid,
    euler_of_quaternions,
    first_of_each,
    hamilton,
    quaternions_of_euler,
    quaternions_of_matrices,
    random_rotations,
    rotation_angle,
    rotation_matrices,
    rotations_of_6d,
    with_positive_w,
)
from torchcaps.core.symmetry import group_table, symmetry_group

scipy_rotation = pytest.importorskip("scipy.spatial.transform").Rotation


def draw(count=50, seed=0):
    drawn = random_rotations(count, torch.Generator().manual_seed(seed)).double()
    return torch.nn.functional.normalize(drawn, dim=1)


def of_scipy(rotation):
    return torch.from_numpy(np.roll(rotation.as_quat(), 1, axis=-1))  # scipy has w last


def as_scipy(quaternions):
    return scipy_rotation.from_quat(np.roll(quaternions.numpy(), -1, axis=-1))


def assert_same_rotations(found, expected):
    assert rotation_angle(found, expected).max() < 1e-4


def test_w_comes_first():
    quarter_about_z = torch.tensor([0.5**0.5, 0, 0, 0.5**0.5])
    assert_close(rotation_matrices(quarter_about_z) @ torch.tensor([1.0, 0, 0]), torch.tensor([0.0, 1, 0]))
    assert_close(rotation_matrices(torch.tensor([1.0, 0, 0, 0])), torch.eye(3))


def test_products_turn_by_the_right_one_first():
    p, q = draw(seed=1), draw(seed=2)
    assert_same_rotations(hamilton(p, q), of_scipy(as_scipy(p) * as_scipy(q)))
    assert_close(rotation_matrices(hamilton(p, q)), rotation_matrices(p) @ rotation_matrices(q))


def test_matrices_and_back():
    q = draw()
    half_turns = torch.eye(4, dtype=torch.float64)  # where w vanishes
    for each in (q, half_turns):
        assert_same_rotations(quaternions_of_matrices(rotation_matrices(each)), each)
    assert_close(rotation_matrices(q), torch.from_numpy(as_scipy(q).as_matrix()))
    assert (with_positive_w(q)[:, 0] >= 0).all()


def test_euler_angles_turn_about_x_then_y_then_z():
    degrees = torch.rand(40, 3, dtype=torch.float64) * 720 - 360
    expected = of_scipy(scipy_rotation.from_euler("xyz", degrees.numpy(), degrees=True))
    assert_same_rotations(quaternions_of_euler(degrees), expected)
    found = euler_of_quaternions(draw())
    assert_close(found, torch.from_numpy(as_scipy(draw()).as_euler("xyz", degrees=True)))


def test_euler_angles_are_right_where_two_axes_fall_together():
    locked = quaternions_of_euler(torch.tensor([[30.0, 90, 20], [-50, -90, 70]], dtype=torch.float64))
    found = euler_of_quaternions(locked)
    assert (found[:, 2] == 0).all()
    assert_same_rotations(quaternions_of_euler(found), locked)


def test_the_grid_of_the_thesis_has_2916_distinct_rotations():
    grid = euler_grid()
    assert len(grid) == 6859
    assert len((grid % 360).unique(dim=0)) == 6859 - 1027
    distinct = euler_grid(repeated=False)
    assert len(distinct) == 2916
    q = quaternions_of_euler(distinct.double())
    cosines = (q @ q.T).abs().fill_diagonal_(0)
    assert cosines.max() < 0.99999  # no two are the same


def test_the_first_of_equal_rotations_is_kept():
    q = draw(3)
    repeated = torch.stack((q[1], q[0], -q[1], q[2], q[0]))
    assert first_of_each(repeated).tolist() == [0, 1, 3]
    assert distinct_numbers(repeated).tolist() == [0, 1, 0, 2, 1]


def test_angles_agree_with_scipy():
    p, q = draw(seed=1), draw(seed=2)
    expected = torch.from_numpy(np.degrees((as_scipy(p).inv() * as_scipy(q)).magnitude()))
    assert_close(rotation_angle(p, q), expected)
    assert_close(rotation_angle(p, -q), expected)


def test_six_numbers_give_the_rotation_whose_columns_they_are():
    q = draw()
    matrices = rotation_matrices(q)
    stretched = torch.cat((2 * matrices[..., 0], matrices[..., 1] + 3 * matrices[..., 0]), dim=-1)
    assert_same_rotations(rotations_of_6d(stretched), q)


def test_the_axial_mean_is_the_strongest_eigenvector():
    near = torch.nn.functional.normalize(draw(1) + 0.3 * torch.randn(5, 9, 4, dtype=torch.float64), dim=-1)
    weights = torch.rand(5, 9, dtype=torch.float64)
    flipped = near * torch.randn(5, 9, 1).sign()
    scatter = torch.einsum("bn,bni,bnj->bij", weights, near, near)
    expected = torch.linalg.eigh(scatter).eigenvectors[..., -1]
    assert rotation_angle(axial_mean(near, weights), expected).max() < 1e-5
    assert rotation_angle(axial_mean(flipped, weights), expected).max() < 1e-5
    by_scipy = of_scipy(as_scipy(near[0]).mean(weights[0].numpy()))
    assert rotation_angle(axial_mean(near, weights)[0], by_scipy) < 1e-5


def test_the_axial_mean_of_vectors_without_weight_is_no_direction():
    vectors = torch.randn(2, 5, 4, requires_grad=True)
    mean = axial_mean(vectors, torch.zeros(2, 5))
    mean.sum().backward()
    assert torch.equal(mean, torch.zeros(2, 4))
    assert torch.equal(vectors.grad, torch.zeros(2, 5, 4))


def test_the_axial_mean_has_the_gradient_of_finite_differences():
    vectors = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(axial_mean, (vectors, weights))


@pytest.mark.parametrize(("name", "size"), [("none", 1), ("cube", 24), ("tetrahedron", 12), ("0 0 0 1", 2)])
def test_symmetry_groups_are_closed(name, size):
    group = symmetry_group(name).double()
    assert len(group) == size
    products = hamilton(group[:, None], group[None]).flatten(0, 1)
    assert len(first_of_each(torch.cat((group, products)), digits=4)) == size


def test_the_groups_of_solids_map_their_corners_onto_each_other():
    signs = torch.tensor([-1.0, 1.0])
    cube = torch.cartesian_prod(signs, signs, signs)
    for name, corners in {"cube": cube, "tetrahedron": cube[cube.prod(1) > 0]}.items():
        turned = torch.einsum("gij,nj->gni", rotation_matrices(symmetry_group(name)), corners)
        assert (torch.cdist(turned, corners.expand(len(turned), -1, -1)).min(-1).values < 1e-3).all()


def test_groups_of_classes_stand_in_one_table():
    table = group_table(("cube", "none"))
    assert table.shape == (2, 24, 4)
    assert rotation_angle(table[1], torch.tensor([1.0, 0, 0, 0])).max() == 0


@pytest.mark.parametrize("spec", ["sphere", "1 0 0", "1 1 0 0", "0 0 0 0.97", "0.9999 0.0141 0 0"])
def test_what_is_no_symmetry_is_refused(spec):
    with pytest.raises(UserError, match="symmetry"):
        symmetry_group(spec)
