import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import dataset_info, load_dataset
from torchcaps.parse import Explainer
from torchcaps.train import Machine, export_run, load_labelled, load_predictor, load_run, shrink_run
from torchcaps.train import train as train_recipe
from torchcaps.train.recipe import build
from torchcaps.train.run import card_of
from torchcaps.zoo import predict


def write_folder(root):
    """Dark cats and bright dogs, so that mean and deviation are not the usual ones."""
    draw = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 2)):
        for name, brightness in (("cat", 0), ("dog", 60)):
            (root / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = draw.integers(brightness, brightness + 90, (20, 20), dtype=np.uint8)
                Image.fromarray(pixels).save(root / split / name / f"{number}.png")
    return root


@pytest.fixture
def trained(tmp_path):
    """A run on a folder of images that is gone, an image of it, and what was said when it was there."""
    root, out = write_folder(tmp_path / "pets"), tmp_path / "run"
    values = {
        "model": {"name": "dr_capsnet_tiny_test", "image_size": 20, "num_classes": 2, "decoder": "none"},
        "data": {"name": f"folder:{root}", "validation": 0.25, "preprocess": {"normalize": "dataset"}},
        "batch_size": 6,
        "epochs": 1,
    }
    train_recipe(build(values), out, Machine(device="cpu"))
    image = tmp_path / "image.png"
    (root / "test" / "dog" / "0.png").rename(image)
    (out / "data.json").rename(tmp_path / "card")
    said = predict(load_run(out), [image])  # from the folder itself
    (tmp_path / "card").rename(out / "data.json")
    root.rename(tmp_path / "moved")
    return out, image, said


def test_a_run_classifies_images_when_its_dataset_is_gone(trained):
    out, image, said = trained
    assert predict(load_run(out), [image]) == said
    assert set(said[0]["activations"]) == {"cat", "dog"}


def test_images_that_a_run_prepares_get_the_answers_of_their_files(trained):
    out, image, said = trained
    run, pixels = load_run(out), torch.from_numpy(np.array(Image.open(image)))[None, None]
    for images in (pixels, pixels.float() / 255):
        answers = run.model(run.prepare(images)).activations[0].tolist()
        assert answers == pytest.approx(list(said[0]["activations"].values()), abs=1e-5)
    unscaled = run.model(pixels.float() / 255).activations[0].tolist()
    assert unscaled != pytest.approx(answers, abs=1e-5)


def test_a_folder_with_other_classes_than_in_training_does_not_stand_in_for_the_data_of_a_run(
    trained, tmp_path
):
    out, image, said = trained
    changed = (tmp_path / "moved").rename(tmp_path / "pets")
    for split in ("train", "test"):
        (changed / split / "dog").rename(changed / split / "a dog")  # comes before cat now
    run = load_run(out)
    for split in ("train", "validation", "test"):
        with pytest.raises(
            MissingDataError, match="has the classes a dog, cat; the run knows, in this order"
        ):
            load_labelled(run, split)
    with pytest.raises(UserError, match="a dog, cat"):
        predict(run, "test:0")
    assert predict(run, image) == said
    explainer = Explainer(run)
    assert explainer.explain(explainer.read(str(image))).usual is None


def test_a_run_of_a_system_that_writes_accents_apart_knows_its_classes(trained):
    card = trained[0] / "data.json"
    card.write_text(card.read_text(encoding="utf-8").replace("cat", "ka\u0308t"), encoding="utf-8")
    assert load_run(trained[0]).card.classes == ("k\u00e4t", "dog")


@pytest.mark.slow
def test_a_run_is_exported_when_its_dataset_is_gone(trained, tmp_path):
    out, image, said = trained
    export_run(load_run(out), tmp_path / "network.pt2", format="torch-export")
    (exported,) = predict(load_predictor(tmp_path / "network.pt2", trust=True), [image])
    assert exported["activations"] == pytest.approx(said[0]["activations"], abs=1e-5)


def test_a_run_explains_images_when_its_dataset_is_gone(trained):
    explainer = Explainer(load_run(trained[0]))
    found = explainer.explain(explainer.read(str(trained[1]))).as_json(explainer.info.classes)
    assert found["activations"] == pytest.approx(trained[2][0]["activations"], abs=1e-5)
    assert found["typicality"] is None
    with pytest.raises(MissingDataError, match="pets"):
        explainer.read("test:0")


def test_what_becomes_of_a_run_keeps_the_card(trained, tmp_path):
    run = load_run(trained[0])
    assert shrink_run(run, tmp_path / "shrunk").card == run.card


def test_a_run_without_a_card_looks_for_its_dataset(trained):
    (trained[0] / "data.json").unlink()
    with pytest.raises(MissingDataError, match="pets"):
        predict(load_run(trained[0]), [trained[1]])


def test_a_card_says_what_the_dataset_says(tmp_path):
    root = write_folder(tmp_path / "pets")
    info = dataset_info(f"folder:{root}@8")
    found = card_of(info).describe(info.name)
    assert (found.classes, found.channels, found.height, found.width) == (("cat", "dog"), 1, 8, 8)
    pixels = load_dataset(f"folder:{root}@8", "train").images.double() / 255
    assert torch.tensor([*found.mean, *found.std]).tolist() == pytest.approx(
        [float(pixels.mean()), float(pixels.std(unbiased=False))]
    )
    with pytest.raises(MissingDataError, match="holds no images"):
        found.reader(tmp_path, "test")
