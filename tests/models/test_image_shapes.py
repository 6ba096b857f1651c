"""Images that are not square, in every family; a new variant is covered the moment it is registered."""

import copy
import json

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.inspection import count_flops, inspect
from torchcaps.layers import map_sizes
from torchcaps.models import (
    MODELS,
    EMCapsNetConfig,
    build_model,
    capsule_head,
    config_as_json,
    create_model,
    list_models,
)
from torchcaps.models.em_capsnet import child_coordinates

from accuracy import assert_as_accurate_as
from models.contract import images

TINY = list_models("*_tiny_test")
SIZES = {  # odd and even, what can be halved, and what a trunk leaves a map of
    "classification": (21, 30),
    "segmentation": (16, 24),
    "pose": (21, 30),
    "retrieval": (33, 40),
}


def wide(name, **changes):
    return create_model(name, image_size=SIZES[MODELS[name].task], **changes)


@pytest.fixture(params=TINY)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return wide(name)


def test_the_shape_is_channels_height_width(name, model):
    assert model.image_shape == (model.config.in_channels, *SIZES[MODELS[name].task])


def test_outputs_have_the_shape_of_their_task(name, model):
    output = model(images(model))
    classes = model.config.num_classes
    expected = {
        "classification": (2, classes),
        "segmentation": (2, classes, *model.image_shape[1:]),
        "pose": (2, classes),
        "retrieval": (2, getattr(model.config, "descriptor", 0)),
    }
    assert output[0].shape == expected[MODELS[name].task]
    assert (output.reconstruction is None) == (model.decoder is None)
    if output.reconstruction is not None:
        assert output.reconstruction.shape == (2, *model.image_shape)


@pytest.mark.parametrize("decoder", ["fc", "fc_unmasked", "conv"])
@pytest.mark.parametrize("size", [(21, 30), (30, 21), (20, 37)])
def test_every_decoder_draws_the_image_it_was_given(decoder, size):
    model = create_model("dr_capsnet_tiny_test", image_size=size, decoder=decoder)
    assert model(images(model)).reconstruction.shape == (2, 1, *size)


def test_every_parameter_learns(model):
    output = model(images(model))
    weights = torch.rand(output[0].shape)  # descriptors have a constant length
    total = (weights * output[0]).square().sum()
    if output.reconstruction is not None:
        total = total + output.reconstruction.sum()
    total.backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


def test_an_image_does_not_see_its_neighbours(model):
    batch = images(model.eval(), batch=3)
    assert_close(model(batch)[0][:1], model(batch[:1])[0])


@pytest.mark.parametrize("name", [name for name in TINY if MODELS[name].task != "segmentation"])
@pytest.mark.parametrize(("channels", "height", "width"), [(1, 0, 0), (0, 8, 0), (0, 0, 16), (0, 5, 3)])
def test_a_network_names_the_images_that_it_takes(name, channels, height, width):
    """Segmentation networks take any size that they can halve."""
    model = create_model(name)
    given = [side + more for side, more in zip(model.image_shape, (channels, height, width), strict=True)]
    taken, got = ("x".join(map(str, shape)) for shape in (model.image_shape, given))
    with pytest.raises(
        UserError, match=rf"takes images of {taken} \(channels, height, width\), got {got}; resize"
    ):
        model(torch.rand(2, *given))


def test_height_comes_before_width():
    model = create_model("dr_capsnet_tiny_test", image_size=(21, 30))
    with pytest.raises(UserError, match=r"takes images of 1x21x30 .*got 1x30x21"):
        model(torch.rand(1, 1, 30, 21))


def test_the_config_survives_json(name, model):
    stored = json.loads(json.dumps(config_as_json(model.config)))
    assert stored["image_size"] == list(model.image_shape[1:])
    twin = build_model({"name": name, **stored})
    assert twin.config == model.config
    twin.load_state_dict(model.state_dict())


def test_a_square_is_stored_as_one_number(name):
    registered = MODELS[name].config
    assert config_as_json(create_model(name).config)["image_size"] == registered.image_size
    assert isinstance(registered.image_size, int)


def test_two_equal_sides_are_a_square(name):
    side = MODELS[name].config.image_size
    square, pair = create_model(name), create_model(name, image_size=[side, side])
    pair.load_state_dict(square.state_dict())
    batch = images(square.eval())
    assert torch.equal(pair.eval()(batch)[0], square(batch)[0])


@pytest.mark.parametrize("family", ["dr_capsnet", "em_capsnet", "backbone_capsnet"])
def test_operations_do_not_depend_on_which_side_is_longer(family):
    wide, tall, small = (
        count_flops(create_model(f"{family}_tiny_test", **size))
        for size in ({"image_size": (21, 30)}, {"image_size": (30, 21)}, {})
    )
    assert wide == tall
    assert wide["total"] > small["total"]


def test_capsules_can_be_inspected(model):
    assert inspect(model, images(model)).images == 2


@pytest.mark.parametrize("size", [(3, 30), (30, 3)])
@pytest.mark.parametrize("name", [name for name in TINY if MODELS[name].task == "classification"])
def test_a_side_that_is_too_short_is_answered_with_the_setting_that_works(name, size):
    message = rf"an image of {size[0]}x{size[1]} px .*the smallest that works is \d+ px a side: set"
    with pytest.raises(UserError, match=message) as refused:
        create_model(name, image_size=size)
    advised = json.loads(str(refused.value).partition("model.image_size=")[2])
    assert create_model(name, image_size=advised).image_shape[1:] == tuple(advised)


def test_images_of_another_shape_are_answered_with_the_setting_that_would_do():
    model = create_model("dr_capsnet_tiny_test")
    with pytest.raises(UserError, match=r"set model.in_channels=3 and model.image_size=\[44,60\]"):
        model(torch.rand(1, 3, 44, 60))
    with pytest.raises(UserError, match=r"set model.in_channels=1 and model.image_size=44"):
        model(torch.rand(1, 1, 44, 44))


def test_images_with_channels_last_are_told_to_move_them():
    model = create_model("dr_capsnet_tiny_test", in_channels=3, image_size=(20, 24))
    images = torch.rand(2, 20, 24, 3)
    with pytest.raises(UserError, match=r"move the channels to the front, as images.permute\(0, 3, 1, 2\)"):
        model(images)
    assert len(model(images.permute(0, 3, 1, 2)).activations) == 2


def test_sides_that_cannot_be_halved_are_answered_with_a_setting():
    with pytest.raises(UserError, match=r"got 16x26; .*set model.image_size=\[16,28\]"):
        create_model("unet_tiny_test", image_size=(16, 26))


@pytest.mark.parametrize("factorised", [False, True])
def test_a_head_on_a_trunk_covers_a_map_that_is_not_square(factorised):
    model = wide("backbone_capsnet_tiny_test", factorised=factorised)
    assert model.trunk(images(model)).shape[2:] == (3, 4)
    conv = model.depthwise if factorised else model.primary.conv
    assert conv.kernel_size == (3, 4)
    own = capsule_head(torch.nn.Conv2d(1, 8, 3), wide("backbone_capsnet_tiny_test").config)
    assert own.primary.conv.kernel_size == (19, 28)


def test_coordinates_are_those_of_the_receptive_fields():
    """Capsule votes are shifted by where the gradient of a capsule lies, with all weights one."""
    config = EMCapsNetConfig(image_size=(33, 44))
    image = torch.zeros(1, 1, 33, 44, requires_grad=True)
    features = image
    for stage in config.stages:
        kernel = torch.ones(1, 1, stage.kernel, stage.kernel)
        features = torch.nn.functional.conv2d(features, kernel, stride=stage.stride)
    height, width = map_sizes(config.image_size, config.stages)[-1]
    assert features.shape[2:] == (height, width)
    coordinates = child_coordinates(config).view(height, width, 32, 2)
    for row, column in ((0, 0), (height - 1, 2), (1, width - 1)):
        (seen,) = torch.autograd.grad(features[0, 0, row, column], image, retain_graph=True)
        centre = torch.stack([seen[0, 0].sum(axis).nonzero().float().mean() for axis in (1, 0)])
        expected = (centre - torch.tensor([16.0, 21.5])) / 100
        assert_close(coordinates[row, column], expected.expand(32, 2))


def answers(model, batch, backend):
    for layer in model.modules():
        if hasattr(layer, "backend"):
            layer.backend = backend
    with torch.no_grad():
        return model(batch).activations.cpu()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "family", ["dr_capsnet", "gamma_capsnet", "effconv_capsnet", "em_capsnet", "segcaps"]
)
def test_fused_kernels_see_height_and_width(family, device):
    """A batch of eight, for which the kernels are worth their while on a CPU too.

    Tests of the kernels bound their rounding; sides that were taken for each other err by far more.
    """
    model = wide(f"{family}_tiny_test").eval()
    batch = images(model, batch=8)
    exact = answers(copy.deepcopy(model).double(), batch.double(), "torch")
    plain, fused = (answers(model.to(device), batch.to(device), backend) for backend in ("torch", "auto"))
    assert_as_accurate_as(fused, plain, exact, factor=8.0)
