"""What every registered model must do; a new variant is covered the moment it is registered."""

from copy import deepcopy
from dataclasses import fields
from functools import cache

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError, sketching
from torchcaps.inspection import count_parameters, describe_model
from torchcaps.models import MODELS, build_model, config_as_json, create_model, list_models
from torchcaps.routing import list_routings

from models.contract import NetworkContract, images
from refusal import REFUSED

TINY = [name for name in list_models("*_tiny_test") if MODELS[name].task == "classification"]

PARAMETERS = {
    "dr_capsnet_mnist": 6_804_384,
    "dr_capsnet_40": 11_228_064,
    "dr_capsnet_smallnorb": 6_661_200,
    "dr_capsnet_cifar10": 11_990_688,
    "dr_capsnet_cifar10_32": 17_243_808,
    "dr_capsnet_cifar10_original": 22_476_448,
    "dr_capsnet_minimal": 65_386,
    "efficient_capsnet_mnist": 161_824,
    "efficient_capsnet_32": 168_544,
    "efficient_capsnet_smallnorb": 151_664,
    "efficient_capsnet_multimnist": 154_656,
    "gamma_capsnet_mnist": 7_730_336,
    "gamma_capsnet_cifar10": 9_606_816,
    "gamma_capsnet_mnist_thesis": 7_730_336,
    "gamma_capsnet_cifar10_thesis": 9_606_816,
    "deepcaps_28": 8_441_920,
    "deepcaps_64": 13_359_424,
    "deepcaps_28_thesis": 8_433_728,
    "deepcaps_64_thesis": 13_351_232,
    "effconv_capsnet_128": 801_760,
    "effconv_capsnet_64": 801_760,
    "parse_capsnet": 207_760,
    "em_capsnet_base": 317_194,
    "em_capsnet_small": 68_754,
    "conv_baseline": 35_445_522,
    "conv_twin_mnist": 161_766,
    "pose_mlp": 3_071_768,
    "pose_convnet": 2_719_896,
    "pose_convnet_6d": 2_719_896 + 128 * 12 + 12,
    "pose_mlp_small": 2352 * 300 + 300 + 300 * 100 + 100 + 100 * 8 + 8,
    "em_posenet": 3_490_988,
    "em_posenet_hemisphere": 3_490_988,
    "em_posenet_quaternion": 3_490_988 - 1152 * 6 * 12,  # four numbers a pair instead of sixteen
    "descriptor_fcn": 57_079_888,
    "descriptor_capsules": 42_399_824,
}


@pytest.fixture(params=TINY)
def name(request):
    return request.param


create_once = cache(create_model)


@pytest.fixture
def model(name):
    return deepcopy(create_once(name))


def field_names(name):
    return {field.name for field in fields(MODELS[name].config)}


class TestClassifiers(NetworkContract):
    pass


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_parameters_are_exact(name, count):
    with torch.device("meta"):
        model = create_model(name)
    assert count_parameters(model) == count


def test_a_description_has_the_parameters():
    assert describe_model("parse_capsnet")["params"] == PARAMETERS["parse_capsnet"]


def test_the_decoder_is_counted():
    with torch.device("meta"):
        model = create_model("dr_capsnet_mnist", decoder="fc")
    assert count_parameters(model) == 8_215_728


def test_one_capsule_per_class(model):
    output = model(images(model))
    assert output.activations.shape == (2, model.config.num_classes)
    assert output.poses.shape[:2] == (2, model.config.num_classes)


def test_routing_is_returned_only_when_asked_for(name, model):
    batch = images(model.eval())
    assert model(batch).layers == ()
    output = model(batch, return_routing=True)
    if not output.layers:
        assert "routing" not in field_names(name)
        return
    for children, routed in output.layers:
        assert routed.coupling.shape[-2] <= children.activations[0].numel()
        assert routed.coupling.isfinite().all()
    assert_close(output.layers[-1].routed.activations, model(batch).activations)


def test_nothing_is_left_on_the_model(model):
    before = set(vars(model))
    model(images(model), return_routing=True)
    assert set(vars(model)) == before


def test_labels_choose_what_is_decoded(model):
    if model.decoder is None:
        pytest.skip("this variant has no decoder")
    batch, model = images(model), model.eval()
    winner = model(batch).activations.argmax(1)
    other = (winner + 1) % model.config.num_classes
    assert_close(model(batch, winner).reconstruction, model(batch).reconstruction)
    assert not torch.equal(model(batch, other).reconstruction, model(batch).reconstruction)


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_runs_in_bfloat16(name):
    model = create_model(name).bfloat16().eval()
    output = model(images(model).bfloat16())
    assert output[0].isfinite().all()


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_a_sketch_has_every_tensor_of_the_model_and_no_memory(name):
    with sketching():
        sketch = create_model(name)
    sizes = {key: (values.shape, values.dtype) for key, values in create_model(name).state_dict().items()}
    assert {key: (values.shape, values.dtype) for key, values in sketch.state_dict().items()} == sizes
    assert all(parameter.is_meta for parameter in sketch.parameters())


@pytest.mark.parametrize("change", [{"image_size": 24}, {"in_channels": 3}, {"num_classes": 7}], ids=str)
def test_any_size_channels_and_classes(name, change):
    twin = create_model(name, **change)
    assert twin(images(twin)).activations.shape == (2, twin.config.num_classes)


def test_wrong_images_are_explained(model):
    channels, height, _ = model.image_shape
    with pytest.raises(UserError, match=f"images of {channels}x{height}x{height}.*got {channels}x9x9"):
        model(torch.rand(1, channels, 9, 9))


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize("wrong", [torch.zeros(1, 28, 28), [[0.0]]], ids=["three axes", "a list"])
def test_what_is_no_batch_of_images_is_refused(wrong):
    with pytest.raises(UserError, match=r"takes a tensor of images \(batch, channels, height, width\), got"):
        create_model("dr_capsnet_tiny_test")(wrong)


def test_too_small_images_name_the_smallest_that_works(model):
    with pytest.raises(UserError, match=r"the smallest that works is \d+ px"):
        type(model)(type(model.config)(image_size=3))


@pytest.mark.parametrize("routing", list_routings())
def test_any_routing_fits(name, routing):
    if "routing" not in field_names(name):
        pytest.skip("this model has no routed layer")
    twin = create_model(name, routing=routing)
    output = twin(images(twin))
    assert output[0].isfinite().all()
    output.activations.sum().backward()
    assert all(p.grad.isfinite().all() for p in twin.parameters() if p.grad is not None)


def test_wrong_counts_name_their_layer(name):
    with pytest.raises(UserError, match=r"layer 'classes'.*num_classes must be at least 2, got 1"):
        create_model(name, num_classes=1)
    with pytest.raises(UserError, match=r"the first layer.*in_channels must be at least 1, got 0"):
        create_model(name, in_channels=0)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("dr_capsnet", "image_size", 20.0, "model.image_size: expected int or a list of 2, got 20.0"),
        ("dr_capsnet", "image_size", [20, 20, 20], "model.image_size: expected int or a list of 2"),
        ("dr_capsnet", "image_size", [20, "wide"], "model.image_size: expected int or a list of 2"),
        ("dr_capsnet", "num_classes", "ten", "model.num_classes: expected int, got 'ten'"),
        ("dr_capsnet", "kernel_size", 0, "model.kernel_size must be at least 1, got 0"),
        ("dr_capsnet", "primary_pose", 0, "model.primary_pose must be at least 1"),
        ("dr_capsnet", "class_pose", 0, "model.class_pose must be at least 1"),
        ("dr_capsnet", "voters", -1, "model.voters must be at least 0"),
        ("dr_capsnet", "padding", "full", r"model.padding: expected one of \['valid', 'same'\], got 'full'"),
        ("dr_capsnet", "routing", 3, "model.routing: expected str or Mapping or Routing, got 3"),
        ("dr_capsnet", "routing", {"name": None}, "needs a 'name'"),
        ("dr_capsnet", "routing", {"name": "dynamic", "iterations": 2.5}, "routing.iterations: expected int"),
        ("dr_capsnet", "routing", {"name": "dynamic", "iterations": "3"}, "routing.iterations: expected int"),
        ("efficient_capsnet", "norm", "Instance", "model.norm: expected one of"),
        ("efficient_capsnet", "channels", (32, 64, 128), "channels has 3, kernel_sizes has 4"),
        ("efficient_capsnet", "channels", (4, 0, 4, 8), "model.channels must be at least 1"),
        ("efficient_capsnet", "primary_pose", 7, "multiple of 7, the pose"),
        ("effconv_capsnet", "channels", (32, 64, 256), "channels has 3, kernel_sizes has 4"),
        ("parse_capsnet", "channels", (4, 4), "channels must have one value less than strides"),
        ("em_capsnet", "types", (16, 8, 4), "model.types: expected 2 values, got 3"),
        ("deepcaps", "types", 0, "model.types must be at least 1"),
        ("deepcaps", "poses", (4, 8, 8), "model.poses: expected 4 values, got 3"),
        ("deepcaps", "image_size", 0, "smallest that works is 9 px"),
        ("conv_baseline", "channels", (), "at least one convolution"),
        ("conv_baseline", "dropout", 2, "dropout must be"),
    ],
)
def test_impossible_fields_are_refused_when_the_model_is_made(name, field, value, message):
    with pytest.raises(UserError, match=message):
        create_model(f"{name}_tiny_test", **{field: value})


def test_names_and_fields_are_answered_with_near_ones():
    with pytest.raises(UserError, match="did you mean dr_capsnet_mnist"):
        create_model("dr_capsnet_mnits")
    with pytest.raises(UserError, match="did you mean num_classes"):
        create_model("dr_capsnet_mnist", num_clases=3)
    with pytest.raises(REFUSED, match="decoder"):
        create_model("dr_capsnet_mnist", decoder="big")


def test_pretrained_is_answered_with_where_weights_come_from():
    with pytest.raises(UserError, match=r"create_model\(NAME, pretrained=True\).*torchcaps weights list"):
        create_model("dr_capsnet_mnist", pretrained=True)


def test_models_for_tests_are_listed_only_where_the_pattern_names_them():
    assert not [name for name in list_models() if name.endswith("_test")]
    assert not [name for name in list_models("dr_capsnet_*") if name.endswith("_test")]
    assert list_models("dr_*_tiny_test") == ["dr_capsnet_tiny_test"]
    assert list_models("dr_capsnet_tiny_test") == ["dr_capsnet_tiny_test"]


def test_a_recipe_builds_its_model():
    spec = {"name": "dr_capsnet_tiny_test", "num_classes": 7, "image_size": [20, 26]}
    model = build_model(spec)
    assert (model.config.num_classes, model.config.image_size) == (7, (20, 26))
    assert "name" in spec
    with pytest.raises(UserError, match="a model needs a 'name'"):
        build_model({"num_classes": 7})


def test_a_config_with_a_function_cannot_be_saved():
    model = create_model("dr_capsnet_tiny_test", routing=lambda votes, activations: None)
    with pytest.raises(UserError, match="routing of this model is a function"):
        config_as_json(model.config)


@pytest.mark.parametrize("types", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize(("primary_pose", "class_pose"), [(2, 4), (4, 8), (8, 16)])
def test_the_grid_of_routing_annealing_is_built_by_overriding_fields(types, primary_pose, class_pose):
    with torch.device("meta"):
        model = create_model(
            "dr_capsnet_mnist", primary_types=types, primary_pose=primary_pose, class_pose=class_pose
        )
    channels = types * primary_pose
    expected = (
        256 * 81
        + 256
        + 256 * 81 * channels
        + channels
        + 36 * types * 10 * primary_pose * class_pose
        + 10 * class_pose
    )
    assert count_parameters(model) == expected
