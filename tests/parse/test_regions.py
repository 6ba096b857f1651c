"""Which region of the image a capsule answers for."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from torchcaps.layers import ReceptiveField
from torchcaps.models import create_model
from torchcaps.parse import CapsuleMap, Regions, find_regions, fully_connected, through_layers
from torchcaps.parse.regions import weights_of_levels
from torchcaps.parse.truth import owners_in_regions
from torchcaps.parse.whole_map import places_of_map, split_over_map


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    return create_model("parse_capsnet_tiny_test").double().eval()


@pytest.fixture(scope="module")
def images():
    return torch.rand(2, 1, 20, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@torch.no_grad()
def test_places_and_bias_add_up_to_the_length_of_a_capsule(network, images):
    reader = network.map_reader()
    reader.primary.conv.bias.uniform_(-1, 1)
    found = split_over_map(network, reader, images)
    pooled = reader.primary.conv(reader.stem(images)).squeeze((2, 3)).unflatten(1, (3, 4))
    assert_close(found.length, pooled.norm(dim=-1))
    assert_close(found.shares.sum((2, 3)), torch.ones(2, 3, dtype=torch.float64))


@torch.no_grad()
def test_the_part_of_a_place_is_what_the_pose_loses_along_itself_without_that_place(network, images):
    reader = network.map_reader()
    conv, features = reader.primary.conv, reader.stem(images)
    found = split_over_map(network, reader, images)
    before = conv(features).squeeze((2, 3)).unflatten(1, (3, 4))
    for row, column in ((0, 0), (2, 1)):
        without = features.clone()
        without[..., row, column] = 0
        lost = before - conv(without).squeeze((2, 3)).unflatten(1, (3, 4))
        assert_close(found.parts[..., row, column], (lost * F.normalize(before, dim=-1)).sum(-1))


@torch.no_grad()
def test_a_capsule_made_by_one_place_looks_at_the_middle_of_what_that_place_sees(images):
    network = create_model("parse_capsnet_tiny_test").double().eval()
    reader = network.map_reader()
    reader.primary.conv.weight.zero_()
    reader.primary.conv.bias.zero_()
    reader.primary.conv.weight[:, :, 1, 2] = 1
    regions = find_regions(network, images)
    grid, field = places_of_map(network, reader)
    row, column = field.centre(1, 2)
    owners = torch.arange(400).view(1, 20, 20).expand(2, -1, -1)
    assert owners_in_regions(owners, regions).tolist() == [[20 * int(row) + int(column)] * 3] * 2
    assert grid[:2] == tuple(reader.primary.conv.kernel_size)
    heat = regions.alone(0).on_image(torch.eye(3, dtype=torch.float64), (20, 20))
    assert heat.flatten(1).argmax(1).tolist() == [20 * int(row) + int(column)] * 3


@torch.no_grad()
def test_the_regions_of_classes_follow_all_paths_down_to_the_first_capsules(network, images):
    layers = fully_connected(network(images, return_routing=True).layers)
    levels = weights_of_levels(layers, 1)
    assert [len(level) for level in levels] == [3, 3, 3, 4]
    children, routed = through_layers(layers)
    assert_close(levels[-1], (children.activations[1, :, None] * routed.coupling[1]).T)
    assert_close(levels[0], torch.eye(3, dtype=torch.float64))


@torch.no_grad()
def test_capsules_on_several_grids_have_types_and_places_of_their_own():
    network = create_model("deepcaps_tiny_test").eval()
    regions = find_regions(network, torch.rand(1, *network.image_shape))
    assert len(regions.maps) > 1
    counts = [each.capsules for each in regions.maps]
    assert len(regions.types) == sum(counts)
    first, second = (set(part.tolist()) for part in regions.types.split(counts)[:2])
    assert not first & second
    size = network.image_shape[1:]
    weights = torch.zeros(1, sum(counts))
    weights[0, -1] = 1  # the last capsule of the last grid: at the lower right
    heat = regions.on_image(weights, size)[0]
    last = regions.maps[-1]
    row, column = last.field.centre(last.grid[0] - 1, last.grid[1] - 1)
    y, x = divmod(int(heat.argmax()), size[1])
    assert max(abs(y - row), abs(x - column)) <= last.field.step / 2


def test_a_network_without_capsules_has_no_regions():
    network = create_model("conv_baseline_tiny_test")
    assert find_regions(network, torch.rand(1, *network.image_shape)) is None


def test_types_and_weights_go_from_capsules_to_places_by_hand():
    """Capsules are ordered by row, column and type; a map of ones is one at every place that is looked at."""
    wide = CapsuleMap((1, 2, 2), ReceptiveField((1.0, 1.0), 2, 1))  # places (1, 1) and (1, 3)
    high = CapsuleMap((2, 1, 1), ReceptiveField((0.0, 4.0), 1, 1))  # places (0, 4) and (1, 4)
    assert Regions((wide, high)).types.tolist() == [0, 1, 0, 1, 2, 2]
    weights = torch.tensor([[1.0, 3.0, 5.0, 9.0]])
    placed = Regions((wide,)).on_image(weights, (4, 5))[0]
    assert placed[1].tolist() == [1.0, 2.0, 4.5, 7.0, 3.5]  # means over types, bilinear between and around
    both = Regions((wide, high)).on_image(torch.cat([weights, torch.tensor([[20.0, 40.0]])], dim=1), (4, 5))
    assert_close(both[0, :2, 4], placed[:2, 4] + torch.tensor([20.0, 40.0]))
    assert_close(both[0, :, :3], placed[:, :3])
    even = Regions((wide,)).flat(torch.zeros(1, 4, 5))[0]
    assert even.tolist() == [
        [0.25, 0.5, 0.5, 0.5, 0.25],
        [0.5, 1, 1, 1, 0.5],
        [0.25, 0.5, 0.5, 0.5, 0.25],
        [0] * 5,
    ]


@torch.no_grad()
def test_a_kernel_that_is_smaller_than_the_map_reads_its_upper_left_corner(images):
    """A stride of two leaves one position on a map of five by five for kernels of four by four."""
    network = create_model("efficient_capsnet_tiny_test", primary_kernel=4, primary_stride=2).double().eval()
    reader = network.map_reader()
    reader.primary.conv.bias.uniform_(-1, 1)
    features = reader.stem(images)
    assert features.shape[2:] == (5, 5)
    pooled = reader.primary.conv(features).squeeze((2, 3)).unflatten(1, (2, 8))
    found = split_over_map(network, reader, images)
    assert_close(found.length, pooled.norm(dim=-1))
    assert places_of_map(network, reader).grid == (4, 4, 1)
    features[..., 3, 0] = 0
    lost = pooled - reader.primary.conv(features).squeeze((2, 3)).unflatten(1, (2, 8))
    assert_close(found.parts[..., 3, 0], (lost * F.normalize(pooled, dim=-1)).sum(-1))
