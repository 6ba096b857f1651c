"""Exporting a run and importing published weights, as a person would at the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from torchcaps.layers.backbone import create_trunk
from torchcaps.train.recipe import load_recipe

from command import completed as torchcaps

h5py = pytest.importorskip("h5py")
pytest.importorskip("onnxruntime")

KERAS = {  # shapes of the published MNIST file, by the names that Keras gives
    "Efficient_CapsNet/{}/kernel:0": [(5, 5, 1, 32), (3, 3, 32, 64), (3, 3, 64, 64), (3, 3, 64, 128)],
    "Efficient_CapsNet/{}/bias:0": [(32,), (64,), (64,), (128,)],
}
FROM_KERAS = ("import-weights", "keras-efficient-capsnet")
FROM_TORCHVISION = ("import-weights", "torchvision-resnet")


def succeeded(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbered(name, index):
    return f"{name}_{index}" if index else name


def write_keras_file(path):
    random = np.random.default_rng(0)
    shapes = {}
    for pattern, layers in KERAS.items():
        shapes |= {pattern.format(numbered("conv2d", i)): shape for i, shape in enumerate(layers)}
    for index, (width,) in enumerate(KERAS["Efficient_CapsNet/{}/bias:0"]):
        norm = numbered("batch_normalization", index)
        for variable in ("gamma", "beta", "moving_mean", "moving_variance"):
            shapes[f"Efficient_CapsNet/{norm}/{variable}:0"] = (width,)
    shapes["Efficient_CapsNet/primary_caps/conv2d_4/kernel:0"] = (9, 9, 1, 128)
    shapes["Efficient_CapsNet/primary_caps/conv2d_4/bias:0"] = (128,)
    shapes["Efficient_CapsNet/fc_caps/W:0"] = (10, 16, 8, 16)
    shapes["Efficient_CapsNet/fc_caps/b:0"] = (10, 16, 1)
    for index, (inputs, outputs) in enumerate([(160, 512), (512, 1024), (1024, 784)]):
        shapes[f"Generator/{numbered('dense', index)}/kernel:0"] = (inputs, outputs)
        shapes[f"Generator/{numbered('dense', index)}/bias:0"] = (outputs,)
    with h5py.File(path, "w") as file:
        for name, shape in shapes.items():
            file[name] = np.abs(random.normal(scale=0.1, size=shape)).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder made of weights that look like the published ones, on data that needs no files."""
    folder = tmp_path_factory.mktemp("imported")
    write_keras_file(folder / "weights.h5")
    out = ("--out", folder / "run", "--set", "data.name=synthetic_mnist")
    done = torchcaps(*FROM_KERAS, folder / "weights.h5", *out)
    assert f"1,573,168 parameters; run saved in {folder / 'run'}" in succeeded(done)
    return folder / "run"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "digit.png"
    pixels = np.random.default_rng(0).integers(0, 255, (28, 28), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_imported_weights_make_a_run(run):
    assert {path.name for path in run.iterdir()} >= {"recipe.json", "recipe.yaml", "weights.safetensors"}
    assert (run / "metrics.jsonl").read_text() == ""
    assert not (run / "result.json").exists()
    recipe = load_recipe(run / "recipe.yaml")
    assert recipe.model == {"name": "efficient_capsnet_mnist", "decoder": "fc"}
    with h5py.File(run.parent / "weights.h5") as file:
        kernel = torch.tensor(file["Efficient_CapsNet/conv2d_1/kernel:0"][:])
    assert torch.equal(load_file(run / "weights.safetensors")["stem.1.0.weight"][5, 7], kernel[:, :, 7, 5])


def test_an_imported_run_is_evaluated(run):
    result = json.loads(succeeded(torchcaps("eval", run, "--json", "--device", "cpu")))
    assert result["images"] == 128


@pytest.mark.slow
@pytest.mark.parametrize(("format", "name"), [("onnx", "model.onnx"), ("torch-export", "model.pt2")])
def test_an_exported_file_predicts_what_its_run_predicts(run, image, format, name):
    written = json.loads(succeeded(torchcaps("export", run, "--format", format, "--json")))
    assert written["path"] == str(run / name)
    assert written["largest_difference"] < 1e-4
    ours, theirs = (
        json.loads(succeeded(torchcaps("predict", source, image, "--json", "--trust")))
        for source in (run, run / name)
    )
    assert ours[0]["class"] == theirs[0]["class"]
    assert ours[0]["activations"] == pytest.approx(theirs[0]["activations"], abs=1e-4)


@pytest.mark.slow
def test_the_words_of_export_are_few(run, tmp_path):
    command = [sys.executable, "-m", "torchcaps", "export", run, "--out", tmp_path / "small.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert succeeded(done).startswith(f"{tmp_path / 'small.onnx'}: ")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["resnet.pth", "resnet.safetensors"])
def test_a_trunk_is_written_as_safetensors(tmp_path, name):
    from safetensors.torch import save_file

    state = create_trunk("resnet_tiny").state_dict()
    whole = state | {"fc.weight": torch.zeros(1000, 8), "fc.bias": torch.zeros(1000)}
    (save_file if name.endswith("safetensors") else torch.save)(whole, tmp_path / name)
    command = (*FROM_TORCHVISION, tmp_path / name, "--trunk", "resnet_tiny", "--out")
    assert "trunk saved in" in succeeded(torchcaps(*command, tmp_path / "trunk.safetensors"))
    written = load_file(tmp_path / "trunk.safetensors")
    assert written.keys() == state.keys()
    assert all(torch.equal(values, state[key]) for key, values in written.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "nowhere"], "holds no run"),
        (["predict", "model.onnx", "digit.png"], "there is no file model.onnx"),
        (["predict", "text.pt2", "digit.png"], "PyTorch can run code that a .pt2 file holds"),
        (["predict", "text.pt2", "digit.png", "--trust"], "text.pt2 cannot be read as a .pt2 file"),
        ([*FROM_KERAS, "none.h5", "--out", "run"], "there is no file none.h5"),
        ([*FROM_KERAS, "text.pt2", "--out", "run"], "text.pt2 cannot be read as an HDF5 file"),
        (
            [*FROM_KERAS, "empty.h5", "--out", "run"],
            "5 layers of kind 'convolution', these weights have none",
        ),
        (
            [*FROM_KERAS, "empty.h5", "--out", "run", "--recipe", "mnist/dr_capsnet"],
            "is no Efficient-CapsNet; choose another --recipe",
        ),
        (
            [*FROM_TORCHVISION, "text.pt2", "--out", "trunk.safetensors"],
            "text.pt2 cannot be read as a file of tensors alone: it is damaged",
        ),
        (
            [*FROM_TORCHVISION, "text.safetensors", "--out", "trunk.safetensors"],
            "text.safetensors cannot be read as a file of tensors alone",
        ),
        ([*FROM_TORCHVISION, "list.pth", "--out", "trunk.safetensors"], "list.pth holds no state dict"),
        ([*FROM_TORCHVISION, "list.pth", "--out", "trunk.pth"], "is written as a .safetensors file"),
    ],
    ids=lambda value: None if isinstance(value, list) else value[:25],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.pt2").write_text("hello")
    (tmp_path / "text.safetensors").write_text("hello")
    torch.save([1, 2], tmp_path / "list.pth")
    h5py.File(tmp_path / "empty.h5", "w").close()
    done = torchcaps(*arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten_by_imported_weights(run):
    done = torchcaps(*FROM_KERAS, run.parent / "weights.h5", "--out", run)
    assert done.returncode == 2
    assert "already holds a run" in done.stderr
