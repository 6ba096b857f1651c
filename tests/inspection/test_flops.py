import pytest
import torch

from torchcaps.core import Routed, UserError
from torchcaps.inspection import count_flops, describe_model
from torchcaps.models import create_model, list_models
from torchcaps.routing import RoutingShape, list_routings


def on_paper(name, **changes):
    with torch.device("meta"):
        return create_model(name, **changes)


def test_dr_capsnet_by_hand():
    stem = 20 * 20 * 256 * 81
    primary = 6 * 6 * 256 * (256 * 81)
    votes = 1152 * 8 * 10 * 16
    agreement = (3 + 2) * 1152 * 10 * 16
    softmax = 2 * 1152 * 5 * 10  # the first split is even, and the first agreements are the logits
    squash, bias = 3 * 10 * (6 * 16 + 7), 3 * 10 * 16
    logits, lengths = 1152 * 10, 10 * (2 * 16 + 1)
    routing = 2 * agreement + softmax + squash + bias + logits + lengths
    assert count_flops(on_paper("dr_capsnet_mnist")) == {
        "total": 2 * (stem + primary + votes) + routing,
        "products": 2 * (stem + primary + votes),
        "routing": routing,
        "layers": {"classes.routing": routing},
    }


def test_a_module_of_the_user_is_counted_once_it_names_the_size_of_its_images():
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5))
    with pytest.raises(UserError, match=r"set its attribute image_shape to \(channels, height"):
        count_flops(network)
    network.image_shape = (1, 8, 8)
    assert count_flops(network)["total"] == 2 * (4 * 36 * 9 + 4 * 36 * 5)


def test_the_decoder_counts():
    plain, drawn = (count_flops(on_paper("dr_capsnet_mnist", decoder=name)) for name in ("none", "fc"))
    assert drawn["total"] - plain["total"] == 2 * (160 * 512 + 512 * 1024 + 1024 * 784)


def test_a_convolutional_layer_routes_at_each_position():
    layers = count_flops(on_paper("em_capsnet_base"))["layers"]
    one_position = on_paper("em_capsnet_base").layers[0].routing.cost(RoutingShape(9 * 32, 32, 16)).flops
    assert layers["layers.0.routing"] == 6 * 6 * one_position
    assert layers["classes.routing"] == 16 * 32 * 5 * 16  # the coordinates; what routes them is apart
    assert layers["classes.routing.routing"] > 0


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_twice_the_images_are_twice_the_work(name):
    model = create_model(name)
    one, two = (count_flops(model, batch=batch)["total"] for batch in (1, 2))
    if name.startswith("em_posenet"):  # weights that a network computes are made once for all images
        assert count_flops(model, batch=3)["total"] - two == two - one
    else:
        assert two == 2 * one
    assert model.training


def test_counting_leaves_a_frozen_trunk_in_evaluation_mode():
    model = create_model("backbone_capsnet_tiny_test")
    model.trunk.eval()
    count_flops(model)
    assert model.training
    assert not any(module.training for module in model.trunk.modules())


@pytest.fixture(scope="module")
def plain():
    return count_flops(on_paper("dr_capsnet_tiny_test"))


@pytest.mark.parametrize("routing", list_routings())
def test_every_routing_is_counted(routing, plain):
    count = count_flops(on_paper("dr_capsnet_tiny_test", routing=routing))
    assert count["routing"] > 0
    assert count["products"] == plain["products"]


def test_descriptions_carry_the_count():
    assert describe_model("dr_capsnet_mnist")["flops"] == 403_717_692


def test_a_function_without_a_formula_counts_its_products_alone():
    def mean(votes, activations):
        poses = votes.mean(-3)
        return Routed(poses, poses.norm(dim=-1), votes.new_full(votes.shape[:-1], 1 / votes.shape[-2]))

    assert count_flops(create_model("dr_capsnet_tiny_test", routing=mean))["routing"] == 0


@pytest.mark.parametrize("backend", ["auto", "fused"])
def test_a_chosen_kernel_changes_no_count_and_stays_chosen(backend, plain):
    model = on_paper("dr_capsnet_tiny_test")
    model.classes.backend = backend
    assert count_flops(model) == plain
    assert model.classes.backend == backend


@pytest.mark.parametrize("routing", ["dynamic", "self_attention"])
def test_products_of_a_routing_below_coordinates_are_left_out_once(routing):
    """What is left are convolutions and votes, which no routing changes."""
    counts = [count_flops(on_paper("em_capsnet_tiny_test", routing=each)) for each in ("em", routing)]
    assert counts[0]["products"] == counts[1]["products"]


def test_votes_of_quaternions_are_counted_as_those_of_matrices():
    matrices, quaternions = (
        count_flops(on_paper(f"em_posenet_{name}")) for name in ("hemisphere", "quaternion")
    )
    assert matrices == quaternions
