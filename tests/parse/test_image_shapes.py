"""Where capsules look, and maps and trees of images that are not square."""

import numpy as np
import pytest
import torch

from torchcaps.models import create_model
from torchcaps.parse import (
    capsule_maps,
    contribution_maps,
    contribution_obstacle,
    contributions,
    evidence_on_image,
    fully_connected,
    parse_tree,
)
from torchcaps.parse.places import place_maps

ON_A_GRID = ["dr_capsnet", "gamma_capsnet", "efficient_capsnet", "effconv_capsnet", "em_capsnet", "deepcaps"]


ALONE = {  # settings in which no capsule competes with those at other positions, and paddings
    **{family: (family, {}) for family in ON_A_GRID},
    "em_capsnet": ("em_capsnet", {"routing": "dynamic"}),
    "deepcaps": ("deepcaps", {"map_iterations": 1, "squash_jointly": False}),
    "padded dr_capsnet": ("dr_capsnet", {"padding": "same"}),
}


@pytest.mark.parametrize("size", [(45, 62), (70, 43)])
@pytest.mark.parametrize(("family", "changes"), ALONE.values(), ids=ALONE)
def test_a_capsule_sees_its_receptive_field_and_nothing_else(family, changes, size):
    """The gradient of a capsule's pose is the oracle: zero outside, and it reaches each edge of the field."""
    model = create_model(f"{family}_tiny_test", image_size=size, **changes).double().eval()
    batch = torch.rand(3, *model.image_shape, dtype=torch.float64, requires_grad=True)
    children = fully_connected(model.encode(batch))[0].children
    poses = children.poses.flatten(1, -2)
    start = 0
    for each in capsule_maps(model):
        height, width, types = each.grid
        for row, column in ((0, 0), (height // 2, width // 2), (height - 1, width - 1), (0, width - 1)):
            first = start + (row * width + column) * types
            (seen,) = torch.autograd.grad(poses[:, first : first + types].sum(), batch, retain_graph=True)
            found = [seen.abs().sum((0, 1)).sum(axis).nonzero().flatten() for axis in (1, 0)]
            for pixels, centre, side in zip(found, each.field.centre(row, column), size, strict=True):
                lowest, highest = centre - (each.field.size - 1) / 2, centre + (each.field.size - 1) / 2
                assert (pixels.min(), pixels.max()) == (max(lowest, 0), min(highest, side - 1))
        start += each.capsules
    assert start == poses.shape[1]


@pytest.mark.parametrize("family", ON_A_GRID)
def test_trees_and_maps_have_the_shape_of_the_image(family):
    model = create_model(f"{family}_tiny_test", image_size=(45, 62)).eval()
    with torch.no_grad():
        output = model(torch.rand(2, *model.image_shape), return_routing=True)
    layers, maps = fully_connected(output.layers), capsule_maps(model)
    in_caps = layers[0].children.activations.flatten(1).shape[1]
    assert sum(each.capsules for each in maps) == in_caps
    assert all(each.grid[0] < each.grid[1] for each in maps)
    tree = parse_tree(layers, grid=maps[0].grid if len(maps) == 1 else None)
    assert tree.layer_sizes[0] == in_caps
    for node in tree.layer(0):
        assert node.position is None or all(np.less(node.position, maps[0].grid))
    if len(layers) > 1:
        return
    chosen = output.activations.argmax(1)
    assert evidence_on_image(layers[0], chosen, maps, (45, 62)).shape == (2, 45, 62)
    if contribution_obstacle(model) is None:
        parts = contributions(model, layers[0], chosen).parts
        assert place_maps(contribution_maps(parts, maps), maps, (45, 62)).shape == (2, 45, 62)
