"""Networks for class and rotation: unit quaternions, and votes that turn with the scene."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.core.rotation import hamilton, rotation_angle
from torchcaps.layers import FcCaps, HamiltonMatrices, use_quaternion_votes
from torchcaps.models import create_model

NAMES = ["pose_mlp_tiny_test", "pose_convnet_tiny_test", "em_posenet_tiny_test"]


def unit(*shape):
    return torch.nn.functional.normalize(torch.randn(*shape, 4, dtype=torch.float64), dim=-1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("settings", [{}, {"rotation": "6d"}, {"votes": "matrix", "routing": "em"}])
def test_rotations_are_unit_quaternions_and_activations_shares(name, settings):
    if any(key not in create_model(name).config.__dataclass_fields__ for key in settings):
        pytest.skip(f"{name} has no such setting")
    output = create_model(name, **settings)(torch.rand(5, 3, 16, 16))
    assert output.rotations.shape == (5, 3, 4)
    assert_close(output.rotations.norm(dim=-1), torch.ones(5, 3))
    assert ((output.activations >= 0) & (output.activations <= 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_images_of_another_size_are_refused(name):
    with pytest.raises(UserError, match=r"takes images of 3x16x16 .*got 3x20x16"):
        create_model(name)(torch.rand(2, 3, 20, 16))


@pytest.mark.parametrize("name", [*NAMES, "descriptor_tiny_test"])
def test_images_without_channels_are_refused(name):
    with pytest.raises(UserError, match="in_channels must be at least 1, got 0"):
        create_model(name, in_channels=0)


def test_a_perceptron_needs_a_pixel():
    with pytest.raises(UserError, match="image_size must be at least 1, got 0"):
        create_model("pose_mlp_tiny_test", image_size=0)


def test_a_network_made_without_memory_answers_as_the_one_whose_weights_it_takes():
    network = create_model("em_posenet_tiny_test").eval()
    with torch.device("meta"):
        empty = create_model("em_posenet_tiny_test").eval()
    empty.load_state_dict(network.state_dict(), assign=True)
    images = torch.rand(2, 3, 16, 16)
    assert_close(empty(images).rotations, network(images).rotations, rtol=0, atol=0)


def test_matrices_of_quaternions_multiply_from_the_right():
    learned, children = unit(5, 2), unit(7, 5)
    weight = HamiltonMatrices().double()(3 * learned)
    votes = torch.einsum("nip,ipod->niod", children, weight)
    assert_close(votes, hamilton(children[:, :, None], learned))


def test_quaternion_votes_make_the_class_layer_equivariant():
    layer = use_quaternion_votes(FcCaps(6, 3, 4, 4, routing="em_rotation", init_std=0.5)).double()
    poses, activations, turn = unit(2, 6), torch.rand(2, 6, dtype=torch.float64), unit()
    still = layer(Capsules(poses, activations))
    turned = layer(Capsules(hamilton(turn, poses), activations))
    assert_close(turned.activations, still.activations)
    expected, found = hamilton(turn, still.poses), turned.poses
    assert_close(found * (expected * found).sum(-1, keepdim=True).sign(), expected)


def test_votes_of_quaternions_begin_near_the_children_that_cast_them():
    layer = use_quaternion_votes(FcCaps(200, 3, 4, 4, init_std=0.1))
    learned = layer.parametrizations.weight.original
    torch.testing.assert_close(learned.mean((0, 1)), torch.tensor([1.0, 0, 0, 0]), rtol=0, atol=0.02)
    matrices = layer.weight.permute(0, 2, 1, 3)  # a child and a parent, then rows and columns
    assert (matrices - torch.eye(4)).abs().mean() < 0.1


def test_quaternion_votes_have_four_learned_numbers_a_pair():
    layer = use_quaternion_votes(FcCaps(6, 3, 4, 4, routing="em_rotation"))
    names = {name: parameter.numel() for name, parameter in layer.named_parameters()}
    assert names["parametrizations.weight.original"] == 6 * 3 * 4
    layer(Capsules(unit(2, 6).float(), torch.rand(2, 6))).poses.sum().backward()
    assert layer.parametrizations.weight.original.grad.abs().sum() > 0


def test_quaternion_votes_stay_in_float32_under_autocast():
    layer = use_quaternion_votes(FcCaps(6, 3, 4, 4, routing="em_rotation"))
    children = Capsules(unit(2, 6).float(), torch.rand(2, 6))
    with torch.autocast("cpu", torch.bfloat16):
        routed = layer(children)
    assert_close(routed.poses, layer(children).poses, rtol=0, atol=0)


def test_quaternion_votes_need_poses_of_four_numbers():
    with pytest.raises(UserError, match="vectors of 4 numbers"):
        use_quaternion_votes(FcCaps(6, 3, 8, 4, routing="em"))


def test_the_couplings_are_there_when_they_are_asked_for():
    model = create_model("em_posenet_tiny_test")
    output = model(torch.rand(2, 3, 16, 16), return_routing=True)
    (layer,) = output.layers
    assert layer.routed.coupling.shape == (2, 3 * 4 * 4, 3)
    assert (
        rotation_angle(torch.nn.functional.normalize(layer.routed.poses, dim=-1), output.rotations).max()
        < 0.1
    )
    assert model(torch.rand(2, 3, 16, 16)).layers == ()


def test_weights_survive_a_copy_of_the_state():
    model, twin = create_model("em_posenet_tiny_test"), create_model("em_posenet_tiny_test")
    twin.load_state_dict(model.state_dict())
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(model(images).rotations, twin(images).rotations)
