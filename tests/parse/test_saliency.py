import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from torchcaps.core import UserError, sides
from torchcaps.layers import ConvStage
from torchcaps.models import create_model
from torchcaps.parse import (
    ReceptiveField,
    capsule_maps,
    map_peaks,
    place_map,
    receptive_field,
    saliency_map,
    upsample_map,
)

sizes = st.integers(1, 4)


def draw(seed, batch, grid, classes):
    generator = torch.Generator().manual_seed(seed)
    in_caps = grid[0] * grid[1] * grid[2]
    activations = torch.rand(batch, in_caps, generator=generator, dtype=torch.float64)
    coupling = torch.rand(batch, in_caps, classes, generator=generator, dtype=torch.float64)
    chosen = torch.randint(classes, (batch,), generator=generator)
    return activations, coupling, chosen


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), sizes, st.tuples(sizes, sizes, sizes), sizes)
def test_saliency_is_the_sum_written_as_loops(seed, batch, grid, classes):
    activations, coupling, chosen = draw(seed, batch, grid, classes)
    height, width, types = grid
    expected = torch.zeros(batch, height, width, dtype=torch.float64)
    for b in range(batch):
        for m in range(height):
            for n in range(width):
                for o in range(types):
                    i = (m * width + n) * types + o
                    expected[b, m, n] += activations[b, i] * coupling[b, i, chosen[b]] / types
    assert_close(saliency_map(activations, coupling, chosen, grid), expected)


def test_one_capsule_lights_its_own_position():
    activations = torch.zeros(1, 3 * 4 * 2)
    activations[0, (2 * 4 + 1) * 2 + 1] = 1
    heat = saliency_map(activations, torch.ones(1, 24, 5), torch.tensor([3]), (3, 4, 2))
    assert heat.nonzero().tolist() == [[0, 2, 1]]
    assert heat.max() == 0.5


def test_the_peak_is_the_strongest_place_over_the_mean_one():
    maps = torch.tensor([[[1.0, 1.0], [1.0, 5.0]], [[3.0, 3.0], [3.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert map_peaks(maps).tolist() == [2.5, 1.0, 0.0]
    assert map_peaks(maps * 1e-20).tolist() == pytest.approx([2.5, 1.0, 0.0])


@pytest.mark.parametrize("grid", [(3, 3, 2), (4, 3, 3), (-4, -3, 2), (0, 3, 2)])
def test_a_grid_of_another_size_is_refused(grid):
    with pytest.raises(UserError, match="does not hold 24"):
        saliency_map(torch.rand(1, 24), torch.rand(1, 24, 2), torch.tensor([0]), grid)


@pytest.mark.parametrize("chosen", [-1, 2])
def test_a_class_that_does_not_exist_is_refused(chosen):
    with pytest.raises(UserError, match=r"0\.\.1"):
        saliency_map(torch.rand(1, 4), torch.rand(1, 4, 2), torch.tensor([chosen]), (2, 2, 1))


@pytest.mark.parametrize(("in_caps", "labels"), [(5, 1), (4, 2)])
def test_tensors_that_do_not_fit_together_are_refused(in_caps, labels):
    with pytest.raises((UserError, TypeError)):  # TypeError: the shape checker, where it runs, is first
        saliency_map(torch.rand(1, 4), torch.rand(1, in_caps, 2), torch.zeros(labels).long(), (2, 2, 1))


def test_upsampling_keeps_a_constant_and_the_total_range():
    maps = torch.rand(2, 6, 6)
    large = upsample_map(maps, (28, 20))
    assert large.shape == (2, 28, 20)
    assert large.min() >= maps.min()
    assert large.max() <= maps.max()
    assert_close(upsample_map(torch.full((1, 3, 2), 0.7), (9, 9)), torch.full((1, 9, 9), 0.7))


def test_an_image_without_pixels_is_refused():
    with pytest.raises(UserError, match="0x4"):
        upsample_map(torch.rand(1, 2, 2), (0, 4))


def test_a_placed_map_equals_the_capsule_at_its_centre_and_fades_outside():
    maps = torch.rand(2, 6, 5)
    field = ReceptiveField((8.0, 7.0), 2.0, 17.0)
    placed = place_map(maps, (28, 24), field)
    assert placed.shape == (2, 28, 24)
    assert_close(placed[:, 8:20:2, 7:17:2], maps)
    assert not placed[:, :6].any()
    assert not placed[:, :, 19:].any()


def test_a_map_may_lie_on_one_pixel_and_not_on_none():
    assert upsample_map(torch.ones(1, 3, 3), (1, 1)).tolist() == [[[1.0]]]
    with pytest.raises(UserError, match="at least one pixel, got 1x0"):
        upsample_map(torch.ones(1, 3, 3), (1, 0))


@pytest.mark.parametrize("size", [32, (29, 40)])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_the_receptive_field_is_where_gradients_arrive(padding, size):
    stages = [ConvStage("a", 5, 1, padding), ConvStage("b", 4, 2, padding), ConvStage("c", 3, 2, padding)]
    image = torch.ones(1, 1, *sides(size), requires_grad=True)
    maps = image
    for stage in stages:
        lacking = [
            max((stage.out_size(before) - 1) * stage.stride + stage.kernel - before, 0)
            for before in reversed(maps.shape[2:])
        ]
        pads = [part for total in lacking for part in (total // 2, total - total // 2)]
        maps = torch.nn.functional.pad(maps, pads if padding == "same" else (0, 0))
        kernel = torch.ones(1, 1, stage.kernel, stage.kernel)
        maps = torch.nn.functional.conv2d(maps, kernel, stride=stage.stride)
    row, column = maps.shape[2] // 2, maps.shape[3] // 2  # far from the border, where nothing is cut off
    maps[0, 0, row, column].backward()
    seen = [image.grad[0, 0].any(dim=axis).nonzero().flatten() for axis in (1, 0)]
    field = receptive_field(size, stages)
    assert [field.size, field.size] == [len(pixels) for pixels in seen]
    assert field.centre(row, column) == tuple(pixels.double().mean().item() for pixels in seen)


def test_the_grid_of_a_model_follows_from_its_stages():
    (found,) = capsule_maps(create_model("dr_capsnet_small"))
    assert found.grid == (6, 6, 8)
    assert found.field == ((8.0, 8.0), 2.0, 17.0)
