"""Published weights, checked against the maths they were trained with, written out in numpy."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from torchcaps.core import MissingDataError, UserError, sides
from torchcaps.layers import map_sizes
from torchcaps.layers.backbone import create_trunk
from torchcaps.models import MODELS, EfficientCapsNet, EfficientCapsNetConfig, create_model
from torchcaps.train import load_recipe
from torchcaps.train.import_weights import import_efficient_capsnet_run
from torchcaps.train.import_weights.files import import_resnet_trunk, read_keras_h5
from torchcaps.train.import_weights.keras import keras_efficient_capsnet
from torchcaps.train.import_weights.torchvision import torchvision_resnet

h5py = pytest.importorskip("h5py")

TINY = {
    "in_channels": 3,
    "image_size": 20,
    "num_classes": 4,
    "channels": (4, 8, 8, 16),
    "primary_kernel": 5,
    "class_pose": 6,
}


def numbered(name, index):
    return f"{name}_{index}" if index else name


def keras_arrays(config, *, first=0, nested=True):
    """Random weights under the names that Keras gives: a nested model, or its layers one by one."""
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32) * 0.3

    def under(layer, variable, group="Efficient_CapsNet"):
        top = group if nested else layer.partition("/")[0]
        return f"{top}/{layer}/{variable}:0"

    arrays, widths = {}, [config.in_channels, *config.channels]
    norm = "batch_normalization" if config.norm == "batch" else "instance_normalization"
    for index, kernel in enumerate(config.kernel_sizes):
        layer = numbered("conv2d", first + index)
        arrays[under(layer, "kernel")] = draw(kernel, kernel, widths[index], widths[index + 1])
        arrays[under(layer, "bias")] = draw(widths[index + 1])
        layer = numbered(norm, first + index)
        arrays[under(layer, "gamma")] = 1 + draw(widths[index + 1])
        arrays[under(layer, "beta")] = draw(widths[index + 1])
        if config.norm == "batch":
            arrays[under(layer, "moving_mean")] = draw(widths[index + 1])
            arrays[under(layer, "moving_variance")] = 0.5 + np.abs(draw(widths[index + 1]))
    primary = f"primary_caps/{numbered('conv2d', first + len(config.channels))}"
    arrays[under(primary, "kernel")] = draw(config.primary_kernel, config.primary_kernel, 1, widths[-1])
    arrays[under(primary, "bias")] = draw(widths[-1])
    rows, columns = map_sizes(config.image_size, config.stages)[-1]
    children = widths[-1] // config.primary_pose * rows * columns
    shape = (config.num_classes, children, config.primary_pose, config.class_pose)
    arrays[under("fc_caps", "W")] = draw(*shape)
    arrays[under("fc_caps", "b")] = draw(*shape[:2], 1)
    height, width = sides(config.image_size)
    sizes = [config.num_classes * config.class_pose, 512, 1024, height * width * config.in_channels]
    for index in range(3):
        layer = numbered("dense", first + index)
        arrays[under(layer, "kernel", "Generator")] = draw(*sizes[index : index + 2]) * 0.2
        arrays[under(layer, "bias", "Generator")] = draw(sizes[index + 1])
    return arrays


def write_h5(path, arrays):
    """The tree of `save_weights`: groups with the names of their layers, and some without weights."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)
        file.create_group("mask_1").attrs["weight_names"] = []
        file.attrs["backend"] = "tensorflow"
        file.attrs["layer_names"] = list(file)


def correlate(images, kernel, bias, stride):
    """Convolution of channels-last images, without padding."""
    height, width = ((size - kernel.shape[0]) // stride + 1 for size in images.shape[1:3])
    out = np.zeros((images.shape[0], height, width, kernel.shape[-1]))
    for row, column in np.ndindex(kernel.shape[:2]):
        rows = slice(row, row + height * stride - stride + 1, stride)
        columns = slice(column, column + width * stride - stride + 1, stride)
        out += images[:, rows, columns] @ kernel[row, column]
    return out + bias


def squash(poses):
    length = np.sqrt((poses**2).sum(-1, keepdims=True))
    return (1 - np.exp(-length)) * poses / length


def keras_forward(arrays, config, images, norm_eps=1e-3):
    """Class capsules and reconstruction in float64, channels-last, as the authors' graph computes them."""
    weights = {}  # in the order they were drawn, which is that of the graph
    for path, array in arrays.items():
        weights.setdefault(path.rsplit("/", 1)[0], {})[path.rsplit("/", 1)[1][:-2]] = array.astype(float)
    layers = iter(weights.values())
    for stride in config.strides:
        conv, norm = next(layers), next(layers)
        images = correlate(images, conv["kernel"], conv["bias"], stride)
        images = np.maximum(images, 0 if config.norm == "batch" else 0.3 * images)
        if config.norm == "batch":
            mean, variance = norm["moving_mean"], norm["moving_variance"]
        else:
            mean, variance = images.mean((1, 2), keepdims=True), images.var((1, 2), keepdims=True)
        images = norm["gamma"] * (images - mean) / np.sqrt(variance + norm_eps) + norm["beta"]
    primary = next(layers)
    # one kernel per channel: a full kernel with that diagonal
    kernel = primary["kernel"][:, :, 0, :, None] * np.eye(images.shape[-1])
    poses = correlate(images, kernel, primary["bias"], config.primary_stride)
    poses = squash(poses.reshape(len(images), -1, config.primary_pose))
    capsules = next(layers)
    votes = np.einsum("...ji,kjiz->...kjz", poses, capsules["W"])
    agreement = np.einsum("...ij,...kj->...i", votes, votes)[..., None] / np.sqrt(config.class_pose)
    coupling = np.exp(agreement - agreement.max(1, keepdims=True))
    coupling = coupling / coupling.sum(1, keepdims=True) + capsules["b"]
    poses = squash((votes * coupling).sum(-2))
    chosen = np.eye(config.num_classes)[np.sqrt((poses**2).sum(-1)).argmax(1)]
    hidden = (poses * chosen[..., None]).reshape(len(images), -1)
    for _ in range(2):
        dense = next(layers)
        hidden = np.maximum(hidden @ dense["kernel"] + dense["bias"], 0)
    dense = next(layers)
    drawn = 1 / (1 + np.exp(-(hidden @ dense["kernel"] + dense["bias"])))
    return poses, drawn.reshape(len(images), *sides(config.image_size), config.in_channels)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, {}),
        (TINY, {}),
        (TINY, {"first": 8}),
        (TINY, {"nested": False}),
        ({**TINY, "norm": "instance"}, {}),
        ({**TINY, "image_size": (20, 22)}, {}),
    ],
    ids=["mnist", "colour", "numbers past ten", "flat", "instance norm", "not square"],
)
def test_a_keras_file_gives_the_same_network(tmp_path, change, names):
    config = EfficientCapsNetConfig(decoder="fc", **change)
    arrays = keras_arrays(config, **names)
    write_h5(tmp_path / "weights.h5", arrays)
    model = EfficientCapsNet(config).eval()
    model.load_state_dict(keras_efficient_capsnet(read_keras_h5(tmp_path / "weights.h5"), config))
    images = np.random.default_rng(1).random((3, *sides(config.image_size), config.in_channels))
    poses, drawn = keras_forward(arrays, config, images, model.stem[0][2].eps)
    output = model(torch.tensor(images).float().permute(0, 3, 1, 2))
    assert_allclose(output.poses.detach(), poses, atol=1e-5)
    assert_allclose(output.reconstruction.detach().permute(0, 2, 3, 1), drawn, atol=1e-5)


def test_batch_norm_has_the_constant_of_keras():
    assert all(block[2].eps == 1e-3 for block in create_model("efficient_capsnet_mnist").stem)


@pytest.mark.parametrize("decoder", ["none", "fc"])
def test_a_file_is_imported_in_one_call(tmp_path, decoder):
    arrays = keras_arrays(EfficientCapsNetConfig())
    write_h5(tmp_path / "weights.h5", arrays)
    recipe = load_recipe("mnist/efficient_capsnet", [f"model.decoder={decoder}"])
    model = import_efficient_capsnet_run(tmp_path / "weights.h5", recipe, tmp_path / "run")
    assert (model.decoder is not None) == (decoder == "fc")
    kernel = arrays["Efficient_CapsNet/conv2d_1/kernel:0"]
    assert_close(model.stem[1][0].weight[5, 7], torch.tensor(kernel[:, :, 7, 5]))
    prior = arrays["Efficient_CapsNet/fc_caps/b:0"]
    assert_close(model.classes.routing.prior[3, 7], torch.tensor(prior[7, 3, 0]))


def test_a_network_of_another_shape_does_not_pass_under_the_recipe_of_mnist(tmp_path):
    """Under it a network for 2x48x48 px and 5 classes would be shown digits, and named after them."""
    config = MODELS["efficient_capsnet_smallnorb"].config
    write_h5(tmp_path / "weights.h5", keras_arrays(config))
    sizes = {key: getattr(config, key) for key in ("in_channels", "image_size", "num_classes", "norm")}
    sizes |= {"kernel_sizes": [7, 3, 3, 3], "strides": [2, 1, 1, 2], "primary_kernel": 8, "decoder": "none"}
    changed = load_recipe(
        "mnist/efficient_capsnet", changes={f"model.{key}": value for key, value in sizes.items()}
    )
    with pytest.raises(UserError, match=r"takes 2x48x48 px and 5 classes, but mnist has 1x28x28 px and 10"):
        import_efficient_capsnet_run(tmp_path / "weights.h5", changed, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    fitting = load_recipe("smallnorb/efficient_capsnet")
    model = import_efficient_capsnet_run(tmp_path / "weights.h5", fitting, tmp_path / "run")
    assert model.image_shape == (2, 48, 48)


def test_a_depthwise_kernel_is_taken_as_well():
    config = EfficientCapsNetConfig(**TINY)
    arrays = keras_arrays(config)
    expected = keras_efficient_capsnet(arrays, config)
    kernel = arrays.pop("Efficient_CapsNet/primary_caps/conv2d_4/kernel:0")
    bias = arrays.pop("Efficient_CapsNet/primary_caps/conv2d_4/bias:0")
    arrays["Efficient_CapsNet/depthwise_conv2d/depthwise_kernel:0"] = kernel.transpose(0, 1, 3, 2)
    arrays["Efficient_CapsNet/depthwise_conv2d/bias:0"] = bias
    assert_close(keras_efficient_capsnet(arrays, config), expected)


def test_what_the_optimizer_left_is_passed_over():
    config = EfficientCapsNetConfig(**TINY)
    arrays = keras_arrays(config)
    saved = {f"model_weights/{name}": array for name, array in arrays.items()}
    saved["optimizer_weights/Adam/conv2d/kernel/m:0"] = np.zeros(3)
    assert_close(keras_efficient_capsnet(saved, config), keras_efficient_capsnet(arrays, config))


def without(arrays, *names):
    return {name: array for name, array in arrays.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: without(a, "Efficient_CapsNet/conv2d_2/bias:0"), "conv2d_2 has no 'bias', only kernel"),
        (lambda a: without(a, "Efficient_CapsNet/fc_caps/b:0"), "fc_caps has no 'b', only W"),
        (
            lambda a: without(a, "Efficient_CapsNet/batch_normalization_1/moving_mean:0"),
            "batch_normalization_1 has no 'moving_mean'",
        ),
        (
            lambda a: without(a, *(n for n in a if "batch_normalization_3" in n)),
            "4 layers of kind 'norm', these weights have Efficient_CapsNet/batch_normalization, ",
        ),
        (lambda a: {}, "5 layers of kind 'convolution', these weights have none"),
        (
            lambda a: a | {"Efficient_CapsNet/conv2d_7/kernel:0": np.zeros((3, 3, 8, 8))},
            "5 layers of kind 'convolution', these weights have .*conv2d_7",
        ),
        (lambda a: a | {"Efficient_CapsNet/lstm/cell:0": np.zeros(3)}, "lstm/cell:0 is no weight of"),
        (
            lambda a: a | {"Efficient_CapsNet/conv2d_1/kernel:0": np.zeros((3, 3, 5, 8))},
            r"conv2d_1 gives stem.1.0.weight the shape \(8, 5, 3, 3\), the network has \(8, 4, 3, 3\)",
        ),
        (
            lambda a: a | {"Efficient_CapsNet/fc_caps/W:0": np.zeros((4, 2, 8))},
            "fc_caps does not have the axes of classes",
        ),
        (
            lambda a: without(a, "Generator/dense_2/kernel:0", "Generator/dense_2/bias:0"),
            "not three dense layers but Generator/dense, Generator/dense_1; leave it out with decoder='none'",
        ),
        (
            lambda a: a | {"Generator/conv2d_5/kernel:0": np.zeros((3, 3, 1, 8))},
            "not three dense layers.*conv2d_5.*; leave it out with decoder='none'",
        ),
        (
            lambda a: {
                **{n: v for n, v in a.items() if "Generator" not in n},
                "Generator/conv2d_5/kernel:0": np.zeros((3, 3, 1, 8)),
            },
            "not three dense layers but Generator/conv2d_5; leave it out with decoder='none'",
        ),
    ],
    ids=[
        "bias",
        "prior",
        "mean",
        "norm",
        "nothing",
        "extra",
        "foreign",
        "shape",
        "axes",
        "decoder",
        "generator",
        "convolutions",
    ],
)
def test_wrong_weights_are_explained(change, message):
    config = EfficientCapsNetConfig(decoder="fc", **TINY)
    with pytest.raises(UserError, match=message):
        keras_efficient_capsnet(change(keras_arrays(config)), config)


def test_weights_of_another_variant_are_explained():
    arrays = keras_arrays(EfficientCapsNetConfig(**TINY))
    with pytest.raises(UserError, match="are these the weights of this variant"):
        keras_efficient_capsnet(arrays)


def test_files_that_cannot_be_read_are_explained(tmp_path):
    (tmp_path / "text.h5").write_text("not a weight in sight")
    with pytest.raises(UserError, match="cannot be read as an HDF5 file"):
        read_keras_h5(tmp_path / "text.h5")
    with pytest.raises(MissingDataError, match="there is no file"):
        read_keras_h5(tmp_path / "none.h5")
    with pytest.raises(UserError, match="'dr_capsnet_mnist' is no Efficient-CapsNet"):
        import_efficient_capsnet_run(tmp_path / "text.h5", load_recipe("mnist/dr_capsnet"), tmp_path / "run")


def random_state(trunk="resnet_tiny"):
    """What torchvision would save: the trunk's names, and a classifier."""
    template = create_trunk(trunk).state_dict()
    state = {
        name: torch.randn(values.shape) if values.is_floating_point() else torch.tensor(7)
        for name, values in template.items()
    }
    width = template["layer2.0.bn3.weight"].shape[0]
    return state | {"fc.weight": torch.randn(1000, width), "fc.bias": torch.randn(1000)}


@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_torchvision_state_dict_loads_strictly(prefix):
    state = random_state()
    renamed = {prefix + name: values for name, values in state.items()}
    trunk = create_trunk("resnet_tiny")
    trunk.load_state_dict(torchvision_resnet(renamed, "resnet_tiny"), strict=True)
    assert_close(trunk.get_submodule("layer2.0.downsample.0").weight, state["layer2.0.downsample.0.weight"])


def test_a_whole_resnet_50_is_recognised():
    with torch.device("meta"):
        state = create_trunk("resnet50").state_dict()
        state |= {"fc.weight": torch.empty(1000, 2048), "fc.bias": torch.empty(1000)}
    assert len(torchvision_resnet(state)) == len(state) - 2


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_a_trunk_is_imported_from_a_file(tmp_path, name):
    from safetensors.torch import save_file

    state = random_state()
    save = save_file if name.endswith("safetensors") else torch.save
    save(state, tmp_path / name)
    trunk = import_resnet_trunk(tmp_path / name, "resnet_tiny")
    assert_close(trunk.state_dict()["layer1.0.conv2.weight"], state["layer1.0.conv2.weight"])


def test_wrong_state_dicts_are_explained():
    state = random_state()
    with pytest.raises(UserError, match=r"these weights lack bn1\.bias and add extra"):
        torchvision_resnet(without(state, "bn1.bias") | {"extra": torch.zeros(1)}, "resnet_tiny")
    with pytest.raises(
        UserError, match=r"gives conv1.weight the shape \(2,\), the network has \(8, 3, 7, 7\)"
    ):
        torchvision_resnet(state | {"conv1.weight": torch.zeros(2)}, "resnet_tiny")
