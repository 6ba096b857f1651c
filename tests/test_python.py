"""What `import torchcaps` gives at once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from torch import nn

import torchcaps
from torchcaps import (
    change_classes,
    create_model,
    evaluate_run,
    explain,
    inspect,
    load_dataset,
    load_run,
    parse_tree,
    predict,
    quantized,
)
from torchcaps.core import CapsuleOutput, UserError
from torchcaps.losses import margin_loss, reconstruction_loss
from torchcaps.routing import iterations_of
from torchcaps.train import Machine, build, set_iterations, train

RECIPE = {
    "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
    "data": {"name": "synthetic_mnist", "limit": 60, "validation": 0.3},
    "batch_size": 16,
    "epochs": 1,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python") / "run"
    train(build(RECIPE), folder, Machine(device="cpu"))
    return folder


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "wide.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(path)
    return path


def test_completion_finds_names_that_are_there():
    names = dir(torchcaps)
    assert {"create_model", "load_run", "load_recipe", "predict", "explain", "layers", "train"} < set(names)
    assert all(hasattr(torchcaps, name) for name in names)


def test_importing_and_listing_names_does_not_import_torch():
    code = "import torchcaps, sys; dir(torchcaps); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_a_folder_name_is_enough_to_predict(run, photo):
    (row,) = predict(str(run), str(photo))
    assert row["image"] == str(photo)
    assert row == predict(torchcaps.load_run(str(run)), [photo])[0]


def test_an_explanation_shows_and_saves_itself(run, photo, tmp_path):
    found = explain(run, photo)
    assert found.predicted == predict(run, photo)[0]["class"]
    assert repr(found).startswith(f"Explained({photo}: {found.predicted}, activation ")
    assert found._repr_html_().startswith("<iframe srcdoc=")
    page = found.save(tmp_path / "page.html").read_text()
    assert f"Why {found.predicted}?" in page


@pytest.mark.slow
def test_pictures_and_tensors_are_explained_like_files(run, photo):
    with Image.open(photo) as picture:
        found = explain(run, picture)
    expected = explain(run, photo).explanation.activations
    assert torch.equal(found.explanation.activations, expected)
    assert torch.equal(explain(run, found.explanation.source.image[0]).explanation.activations, expected)


@pytest.mark.parametrize("clear", [False, True])
def test_an_open_picture_of_a_digit_is_read_like_its_file(tmp_path, clear):
    page = np.full((200, 150, 4), 255, dtype=np.uint8)
    page[90:104, 35:115, :3] = 20  # upright once the picture is turned
    page[..., 3] = np.where(clear & (page[..., 0] == 255), 0, 255)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # the camera was held on its side
    Image.fromarray(page).save(tmp_path / "one.png", exif=exif)
    with Image.open(tmp_path / "one.png") as picture:
        found = explain("dr_capsnet_minimal.mnist", picture).explanation
    expected = explain("dr_capsnet_minimal.mnist", tmp_path / "one.png").explanation
    assert torch.equal(found.source.image, expected.source.image)
    assert torch.equal(found.activations, expected.activations)


def test_a_picture_of_numbers_without_a_white_is_refused():
    model = create_model("dr_capsnet_tiny_test", decoder="none")
    with pytest.raises(UserError, match="the picture has more than 8 bits per pixel"):
        explain(model, Image.fromarray(np.ones((20, 20), dtype=np.float32)))


def test_a_network_without_a_run_is_explained():
    model = create_model("dr_capsnet_tiny_test", decoder="none")
    image = torch.rand(model.image_shape)
    found = explain(model, image, classes=["ant", "bee", "cat", "dog"])
    assert model.training  # it may be in the middle of a training
    model.eval()
    assert torch.equal(found.explanation.activations, model(image.unsqueeze(0)).activations[0].detach())
    assert found.predicted in ("ant", "bee", "cat", "dog")
    assert found.explanation.usual is None
    with pytest.raises(UserError, match="has 4 classes, but 1 names"):
        explain(model, image, classes=["ant"])
    with pytest.raises(UserError, match=r"one image .* is explained, got \(2,"):
        explain(model, torch.stack([image, image]))


@pytest.mark.parametrize("name", ["dr_capsnet_tiny_test", "efficient_capsnet_tiny_test"])
def test_other_classes_keep_what_was_learnt_below_them(name):
    model = create_model(name).eval()
    changed = change_classes(model, 7)
    images = torch.rand(2, *model.image_shape)
    assert changed(images).activations.shape == (2, 7)
    assert not changed.training
    shared = [key for key in model.state_dict() if key.startswith(("stem", "primary"))]
    assert shared
    for key in shared:
        assert torch.equal(changed.state_dict()[key], model.state_dict()[key])
        assert changed.state_dict()[key].data_ptr() != model.state_dict()[key].data_ptr()


def test_other_classes_are_routed_as_often_as_the_old_ones():
    model = create_model("dr_capsnet_tiny_test")
    set_iterations(model, 7)  # as routing annealing leaves it
    assert iterations_of(change_classes(model, 7)) == iterations_of(model) == {"classes.routing": 7}


def tiny():
    return create_model("dr_capsnet_tiny_test")


def scores():
    return torch.rand(4, 3)


LABELS = torch.tensor([0, 1, 2, 0])
WRONG_TYPES = {
    "scores of numpy": (
        lambda: margin_loss(scores().numpy(), LABELS),
        "got a ndarray; give it `activations`",
    ),
    "a whole output": (lambda: margin_loss(CapsuleOutput(scores(), scores()), LABELS), "got a CapsuleOutput"),
    "labels of numpy": (lambda: margin_loss(scores(), LABELS.numpy()), r"torch\.as_tensor\(labels\)"),
    "one-hot labels": (lambda: margin_loss(scores(), torch.eye(3)[LABELS]), r"labels\.argmax\(1\)"),
    "a column of labels": (lambda: margin_loss(scores(), LABELS[:, None]), r"labels\.squeeze\(1\)"),
    "labels of int32": (lambda: margin_loss(scores(), LABELS.int()), r"labels\.long\(\)"),
    "classes in text": (lambda: change_classes(tiny(), "5"), "how many classes there are, as 5, got '5'"),
    "a share of classes": (lambda: change_classes(tiny(), 2.0), "as 5, got 2.0"),
    "names of classes": (lambda: change_classes(tiny(), ["cat", "dog"]), "as 5, got .'cat', 'dog'"),
    "a name to change": (
        lambda: change_classes("dr_capsnet_mnist", 5),
        "from create_model .* got a str first",
    ),
    "layers to change": (lambda: change_classes(nn.Sequential(), 5), "got a Sequential first"),
    "descriptors to change": (
        lambda: change_classes(create_model("descriptor_tiny_test"), 5),
        "DescriptorNetwork does not tell classes apart",
    ),
    "no decoder": (
        lambda: reconstruction_loss(None, scores()),
        'build the model with a decoder, decoder="fc"',
    ),
    "no layers": (lambda: parse_tree(None), r"parse_tree\(output\.layers\); got a NoneType"),
    "no run to ask": (lambda: predict(None, "photo.jpg"), "named by its folder, .* got a NoneType"),
    "no run to explain": (lambda: explain(None, "photo.jpg"), "named by its folder, .* got a NoneType"),
    "other layers": (lambda: explain(nn.Sequential(), "photo.jpg"), "Sequential is not a registered network"),
    "a network to evaluate": (lambda: evaluate_run(tiny()), "named by its folder, .* got a DRCapsNet"),
    "no run to load": (lambda: load_run(None), "loaded from its folder, as runs/mine, got a NoneType"),
    "a name to inspect": (lambda: inspect("dr_capsnet_mnist", scores()), "got a str and a Tensor"),
    "no images": (lambda: inspect(tiny(), None), r"inspect\(model, images\); got a DRCapsNet and a NoneType"),
    "levels in text": (lambda: quantized(tiny(), "11").__enter__(), "whole number, .* got '11'"),
    "levels of 2.5": (lambda: quantized(tiny(), 2.5).__enter__(), "whole number, .* got 2.5"),
    "no dataset": (lambda: load_dataset(None, "train"), "known by its name, .* got a NoneType"),
    "a folder": (lambda: load_dataset(Path("/"), "train"), "is a folder, .* is called folder:/"),
}


@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize(("use", "message"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_answered_with_what_is_wanted(use, message):
    with pytest.raises(UserError, match=message):
        use()


@pytest.mark.compile  # the run-time type checks would answer first
def test_a_number_of_numpy_is_a_number_of_classes():
    assert change_classes(tiny(), np.int64(5)).config.num_classes == 5
