import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.layers import PositionalEM, map_sizes
from torchcaps.models import EMCapsNetConfig, create_model
from torchcaps.models.em_capsnet import CoordinateAddition, child_coordinates
from torchcaps.routing import DynamicRouting, RoutingShape, create_routing, even_routing


def test_maps_have_the_sizes_of_the_paper():
    config = EMCapsNetConfig()
    assert map_sizes(config.image_size, config.stages) == [(14, 14), (14, 14), (6, 6), (4, 4)]


def test_coordinates_are_the_centres_of_receptive_fields():
    """The centre of a field is where the gradient of a capsule's position lies, with all weights one."""
    config = EMCapsNetConfig()
    image = torch.zeros(1, 1, 32, 32, requires_grad=True)
    features = image
    for stage in config.stages:
        features = torch.nn.functional.conv2d(
            features, torch.ones(1, 1, stage.kernel, stage.kernel), stride=stage.stride
        )
    coordinates = child_coordinates(config).view(4, 4, 32, 2)
    for row in range(4):
        (seen,) = torch.autograd.grad(features[0, 0, row, 1], image, retain_graph=True)
        rows, columns = (seen[0, 0].sum(axis).nonzero().float().mean() for axis in (1, 0))
        expected = (torch.stack([rows, columns]) - 15.5) / 100
        assert_close(coordinates[row, 1], expected.expand(32, 2))


def test_coordinates_shift_the_two_named_components():
    seen = {}

    def spy(votes, activations):
        seen["votes"] = votes
        return even_routing(votes, activations)

    routing = CoordinateAddition(spy, torch.tensor([[0.1, 0.2], [0.3, 0.4]]), components=(3, 7))
    routing(torch.zeros(1, 2, 5, 16), torch.ones(1, 2))
    assert_close(seen["votes"][0, 1, 0, [3, 7]], torch.tensor([0.3, 0.4]))
    assert seen["votes"].count_nonzero() == 2 * 5 * 2


def test_settings_reach_every_layer():
    settings = {"iterations": 2, "inverse_temperature": 0.25, "min_variance": 0.5}
    model = create_model("em_capsnet_tiny_test", routing={"name": "em", **settings})
    for routing in (*(layer.routing for layer in model.layers), model.classes.routing.routing):
        assert {name: getattr(routing, name) for name in settings} == settings


def test_any_other_routing_competes_in_its_window():
    model = create_model("em_capsnet_tiny_test", routing="dynamic")
    assert isinstance(model.layers[0].routing, DynamicRouting)
    assert isinstance(create_model("em_capsnet_tiny_test").layers[0].routing, PositionalEM)


def test_a_misspelt_setting_is_answered():
    with pytest.raises(UserError, match="did you mean iterations"):
        create_model("em_capsnet_tiny_test", routing={"name": "em", "iteration": 2})


def test_it_learns_to_tell_two_images_apart():
    torch.manual_seed(0)
    model = create_model("em_capsnet_tiny_test", decoder="none")
    images, labels = torch.rand(2, *model.image_shape), torch.tensor([0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(30):
        loss = torch.nn.functional.nll_loss((model(images).activations + 1e-6).log(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model(images).activations.argmax(1).tolist() == [0, 1]


def test_the_routing_inside_is_the_registered_one():
    model = create_model("em_capsnet_tiny_test")
    assert isinstance(model.classes.routing.routing, type(create_routing("em", RoutingShape(1, 2, 16))))
