import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.layers import map_sizes, receptive_field
from torchcaps.models import create_model


def test_both_last_cells_feed_the_class_capsules():
    with torch.device("meta"):
        small, large = create_model("deepcaps_28"), create_model("deepcaps_64")
    assert small.classes.in_caps == 32 * (4 * 4 + 2 * 2) == 640
    assert large.classes.in_caps == 32 * (8 * 8 + 4 * 4) == 2560


@pytest.mark.parametrize(
    ("name", "eps", "momentum"), [("deepcaps_28", 1e-3, 0.01), ("deepcaps_28_thesis", 1e-8, 0.99)]
)
def test_batch_norms_forget_as_those_they_copy(name, eps, momentum):
    """Keras keeps 99 % of its statistics in each step; the same number in PyTorch's words keeps 1 %."""
    with torch.device("meta"):
        norm = create_model(name).norm
    assert (norm.eps, norm.momentum) == (eps, momentum)


def test_the_routed_skip_and_the_class_layer_are_returned():
    model = create_model("deepcaps_tiny_test").eval()
    skip, classes = model(torch.rand(2, 1, 20, 20), return_routing=True).layers
    assert skip.routed.coupling.shape == (2, 2, 2, 2, 2)
    assert_close(skip.routed.coupling.sum((1, 2, 4)), torch.ones(2, 2))
    assert classes.children.poses.shape == (2, 2 * (3 * 3 + 2 * 2), 4)


def test_the_decoder_draws_without_knowing_the_class():
    model = create_model("deepcaps_tiny_test").eval()
    poses = torch.randn(1, 4, 6)
    same = poses[:, [2]].expand(1, 4, 6)
    assert_close(model.decoder(poses, torch.tensor([2])), model.decoder(same, torch.tensor([0])))


def test_activations_neither_vanish_nor_explode_with_depth():
    model = create_model("deepcaps_28").eval()
    with torch.no_grad():
        trace = model.encode(torch.rand(2, 1, 28, 28))
    lengths = trace[-1].children.activations
    assert 0.3 < lengths.mean() < 2
    assert (lengths[0] - lengths[1]).abs().mean() > 0.01


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        ({"stem_relu": False}, 0),
        ({"conv_bias": True}, 4 * 4 + 3 * 4 * 8),
        ({"depth_kernel": 3}, -9 * 8),
        ({"squash_jointly": False}, 0),
        ({"halve_padding": "symmetric"}, 0),
        ({"stem_squash": True}, 0),
        ({"map_bias": False}, -2 * 4),
        ({"routing": {"name": "dynamic", "inner_bias": False}}, 0),
        ({"map_gradient": "last"}, 0),
    ],
    ids=str,
)
def test_each_deviation_of_the_thesis_is_an_option(option, changes):
    torch.manual_seed(0)
    authors = create_model("deepcaps_tiny_test")
    torch.manual_seed(0)
    port = create_model("deepcaps_tiny_test", **option)
    sizes = [sum(p.numel() for p in model.parameters()) for model in (authors, port)]
    assert sizes[1] - sizes[0] == changes
    images = torch.rand(2, 1, 20, 20)
    if option != {"map_gradient": "last"}:
        assert not torch.equal(authors(images).activations, port(images).activations)


def test_cells_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="must end alike"):
        create_model("deepcaps_tiny_test", poses=(2, 4, 4, 8))
    with pytest.raises(UserError, match=r"layer 'cell4'.*smallest that works is 9 px"):
        create_model("deepcaps_tiny_test", image_size=8)
    assert create_model("deepcaps_tiny_test", image_size=9)(torch.rand(2, 1, 9, 9)).poses.shape == (2, 4, 6)


@pytest.mark.parametrize("position", [(0, 0), (3, 2), (5, 5)])
def test_a_capsule_of_the_third_cell_sees_the_pixels_that_its_field_names(position):
    """The fourth cell routes over whole maps, so that only the third has a border to be found."""
    model = create_model("deepcaps_tiny_test", image_size=44, decoder="none").double().eval()
    images = torch.randn(1, 1, 44, 44, dtype=torch.float64, requires_grad=True)
    grid = model.capsule_grids()[0]
    (height, width), types = map_sizes(44, grid.stages)[-1], grid.types
    assert (height, width) == (6, 6)
    children = model.encode(images)[-1].children.poses[0]
    row, column = position
    children[(row * width + column) * types].sum().backward()
    seen = images.grad[0, 0].nonzero()
    field = receptive_field(44, grid.stages)
    for middle, found in zip(field.centre(row, column), seen.T, strict=True):
        reach = (field.size - 1) / 2
        assert int(found.min()) == max(0, middle - reach)
        assert int(found.max()) == min(43, middle + reach)
