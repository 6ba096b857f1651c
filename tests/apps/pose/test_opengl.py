"""OpenGL and the rasteriser in PyTorch draw the same pictures."""

import pytest
import torch

from torchcaps.apps.pose.opengl import opengl_renderer
from torchcaps.core import UserError
from torchcaps.core.rotation import random_rotations
from torchcaps.data.rendering import View, cube, rasterise, tetrahedron

pytest.importorskip("moderngl", reason="moderngl is not installed")


@pytest.fixture(scope="module")
def draw():
    try:
        return opengl_renderer()
    except UserError as error:
        pytest.skip(f"OpenGL without a screen is missing: {error}")


def overlap(a, b):
    a, b = a > 0, b > 0
    return ((a & b).sum((1, 2, 3)) / (a | b).sum((1, 2, 3))).min().item()


OPEN_CUBE = cube()._replace(is_closed=False, is_convex=False)


@pytest.mark.parametrize(
    ("mesh", "height", "width"),
    [(cube(), 96, 96), (cube(), 48, 96), (cube(), 96, 48), (tetrahedron(), 96, 96), (OPEN_CUBE, 96, 96)],
)
def test_both_engines_agree_on_silhouettes_and_colours(draw, mesh, height, width):
    rotations, view = random_rotations(9, torch.Generator().manual_seed(1)), View(height=height, width=width)
    ours, theirs = rasterise(mesh, rotations, view), draw(mesh, rotations, view)
    assert overlap(ours.masks, theirs.masks) > 0.97
    assert (ours.images.int() - theirs.images.int()).abs().float().mean() < 1.0


def test_more_images_than_one_picture_holds_come_in_their_order(draw):
    rotations, view = random_rotations(5, torch.Generator().manual_seed(1)), View(height=1024, width=1024)
    whole = draw(cube(), rotations, view).masks
    assert torch.equal(whole[4:], draw(cube(), rotations[4:], view).masks)


def test_background_and_mask(draw):
    view = View(height=32, width=32, background=(1.0, 0.0, 0.0))
    found = draw(cube(), torch.tensor([[1.0, 0, 0, 0]]), view)
    assert found.images[0, :, 0, 0].tolist() == [255, 0, 0]
    assert set(found.masks.unique().tolist()) == {0, 255}
