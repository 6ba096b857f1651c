import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.parse import (
    Explainer,
    Usual,
    contribution_maps,
    contributions,
    quantized,
    rank_in_words,
)
from torchcaps.parse.places import place_maps
from torchcaps.train import Run
from torchcaps.train.recipe import Data, Recipe


def make_run(tmp_path, model="dr_capsnet_tiny_test", data="synthetic_mnist", **options):
    torch.manual_seed(0)
    settings = {"image_size": 28, "num_classes": 10, **options}
    recipe = Recipe(
        model={"name": model, **settings}, data=Data(name=data, limit=100, validation=0.2), epochs=1
    )
    network = create_model(model, **settings).eval()
    return Run(tmp_path, recipe, network, 0)


@pytest.fixture(scope="module")
def explainer(tmp_path_factory):
    return Explainer(make_run(tmp_path_factory.mktemp("run")), reference=40)


def test_an_image_of_a_split_is_explained_by_the_quantized_network(explainer):
    source = explainer.read("test:17")
    found = explainer.explain(source)
    network = explainer.run.model
    inputs = explainer.pipeline.for_evaluation(source.image)[1]
    with torch.no_grad():
        plain = network(inputs, return_routing=True).activations[0]
        with quantized(network, 11):
            output = network(inputs, return_routing=True)
    assert torch.equal(found.activations, plain)
    assert found.tree.class_activations == pytest.approx(plain.tolist())
    assert found.tree.is_quantized
    children = {(edge.child, edge.coupling) for edge in found.tree.edges}
    quantized_couplings = output.layers[-1].routed.coupling[0, :, found.tree.chosen].double()
    assert all(quantized_couplings[child] == coupling for child, coupling in children)
    assert found.tree.chosen == output.activations.argmax()
    assert found.evidence.image.shape == (28, 28)
    parts = contributions(network, output.layers[-1], output.activations.argmax(1))
    assert torch.equal(found.contributions.parts, parts.parts)
    shown = place_maps(contribution_maps(parts.parts, found.maps), found.maps, (28, 28))
    assert torch.equal(found.contribution.image, shown[0])
    assert found.perturbed.shape == (6, 11, 1, 28, 28)
    assert source.label == int(explainer._split("test").labels[17])
    data = found.as_json(explainer.info.classes)
    assert data["class"] == explainer.info.classes[int(plain.argmax())]
    assert data["typicality"]["compared_with"] == len(found.usual.others)
    assert found.usual.key_surprise > 0
    assert data["contribution"] == found.contribution.image.tolist()
    assert data["contribution_peak"] == found.contribution.peak
    assert data["contribution_against"] == pytest.approx(float(parts.against))


@pytest.mark.parametrize("family", ["dr_capsnet", "deepcaps"])
def test_peaks_are_those_of_capsules_not_of_pixels(tmp_path, family):
    explainer = Explainer(make_run(tmp_path, f"{family}_tiny_test"), reference=10)
    source = explainer.read("test:0")
    found = explainer.explain(source)
    with torch.no_grad(), quantized(explainer.run.model):
        output = explainer.run.model(explainer.pipeline.for_evaluation(source.image)[1], return_routing=True)
    children, routed = output.layers[-1]
    evidence = (children.activations.flatten(1) * routed.coupling[:, :, found.tree.chosen])[0]
    parts = found.contributions.parts[0].clamp(min=0)
    types = found.maps[0].grid[2]  # innermost in every map
    for values, heat in ((evidence, found.evidence), (parts, found.contribution)):
        places = values.view(-1, types).sum(1)
        assert heat.peak == pytest.approx(float(places.max() / places.mean()), rel=1e-5)


@pytest.mark.parametrize("where", ["primary", "decoder"])
def test_a_network_that_diverged_is_refused(tmp_path, where):
    run = make_run(tmp_path)
    for name, parameter in run.model.named_parameters():
        if where in name:
            parameter.data.fill_(math.nan)
    explainer = Explainer(run, reference=10)
    with pytest.raises(UserError, match="test:0: the network answers with numbers that are not finite"):
        explainer.explain(explainer.read("test:0"))


def test_a_drawing_that_leaves_the_range_of_an_image_is_cut_not_paled(tmp_path):
    run = make_run(tmp_path, "deepcaps_tiny_test")
    run.model.decoder.layers[-1].bias.data.fill_(3.0)  # its last rectifier has no upper end
    explainer = Explainer(run, reference=10)
    perturbed = explainer.explain(explainer.read("test:0")).perturbed
    assert perturbed.min() >= 0
    assert perturbed.max() == 1


def test_the_share_is_that_of_less_surprising_images_of_the_class(explainer):
    found = explainer.explain(explainer.read("validation:0"))
    others = found.usual.others
    assert found.usual.share == sum(other < found.usual.surprise for other in others) / len(others)
    assert found.usual.surprise in others  # a validation image is among those it is compared with


def test_a_tree_is_compared_with_those_of_its_class_that_have_a_finite_surprise(tmp_path):
    explainer = Explainer(make_run(tmp_path), reference=40)
    source = explainer.read("test:0")
    model, predicted, _ = explainer._known
    assert sum(trees.samples for trees in model.dictionary.classes) == 40  # training images
    assert len(predicted) == 20  # all validation images
    own = explainer.explain(source).tree.chosen
    classes, surprise = [own, (own + 1) % 10, own, own], [0.0, 1.0, math.inf, 1e9]
    explainer.__dict__["_known"] = (model, np.array(classes), np.array(surprise))
    usual = explainer.explain(source).usual
    assert usual.others.tolist() == [0.0, 1e9]
    assert usual.share == 0.5


def test_the_class_of_the_quantized_network_and_the_label_stand_beside_the_class(explainer):
    classes, source = tuple("abcdefghij"), explainer.read("test:17")
    found = explainer.explain(source)
    other = (int(found.activations.argmax()) + 1) % 10
    data = replace(found, tree=replace(found.tree, chosen=other)).as_json(classes)
    assert data["class"] == classes[int(found.activations.argmax())]
    assert data["quantized_class"] == classes[other]
    assert data["label"] == classes[source.label]


def test_infinite_surprise_is_no_number_in_json():
    data = Usual(math.inf, math.inf, None, np.array([])).as_json()
    assert data["surprise_bits"] is data["key_surprise_bits"] is data["share_less_surprising"] is None
    assert data["compared_with"] == 0


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_files_of_any_size_and_colour_are_read(explainer, tmp_path, mode):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 33, len(mode)), dtype=np.uint8)
    Image.fromarray(pixels.squeeze()).save(tmp_path / "image.png")
    source = explainer.read(str(tmp_path / "image.png"))
    assert source.image.shape == (1, 1, 28, 28)
    assert source.label is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test:128", "images 0 to 127"),
        ("test:x", "images 0 to 127"),
        ("test:-1", "images 0 to 127"),
        ("nowhere.png", "no image at nowhere.png"),
    ],
)
def test_what_is_no_image_is_answered(explainer, name, message):
    with pytest.raises(UserError, match=message):
        explainer.read(name)


def test_a_network_without_decoder_says_less(tmp_path):
    run = make_run(tmp_path, "gamma_capsnet_tiny_test", decoder="none")
    found = Explainer(run, levels=(11, 6), reference=10).explain(Explainer(run).read("test:0"))
    assert found.perturbed is None
    assert found.contribution is None  # the hidden capsules, which vote for classes, have no place
    assert found.contributions.parts.shape[1] == found.tree.layer_sizes[-2]
    assert found.tree.grid is not None  # the primary ones below them have
    assert found.as_json(tuple("0123456789"))["has_decoder"] is False


def test_the_map_of_a_deep_network_follows_all_paths(tmp_path):
    explainer = Explainer(make_run(tmp_path, "gamma_capsnet_tiny_test"), reference=10)
    source = explainer.read("test:0")
    found = explainer.explain(source)
    with torch.no_grad(), quantized(explainer.run.model):
        output = explainer.run.model(explainer.pipeline.for_evaluation(source.image)[1], return_routing=True)
    (children, hidden), (_, classes) = output.layers
    activations, chosen = children.activations.flatten(1)[0], found.tree.chosen
    evidence = torch.zeros_like(activations)
    for child in range(len(activations)):
        for parent in range(hidden.coupling.shape[2]):
            path = hidden.coupling[0, child, parent] * classes.coupling[0, parent, chosen]
            evidence[child] += activations[child] * path
    places = evidence.view(-1, found.maps[0].grid[2]).sum(1)
    assert found.evidence.peak == pytest.approx(float(places.max() / places.mean()), rel=1e-5)


def test_the_runner_up_is_the_second_class(explainer):
    found = explainer.explain(explainer.read("test:0"))
    row = found.as_json(tuple("0123456789"))
    first, second = sorted(row["activations"].values(), reverse=True)[:2]
    assert row["activations"][row["runner_up"]] == second
    assert row["margin"] == pytest.approx(first - second)


def test_without_the_data_of_the_run_an_image_is_explained_all_the_same(tmp_path):
    digit = Image.new("L", (28, 28))
    digit.paste(255, (12, 5, 16, 23))
    digit.save(tmp_path / "image.png")
    explainer = Explainer(make_run(tmp_path, data="mnist"), data_dir=tmp_path)
    found = explainer.explain(explainer.read(str(tmp_path / "image.png")))
    assert found.usual is None
    assert found.as_json(explainer.info.classes)["typicality"] is None


def test_a_class_that_no_training_image_was_read_as_is_infinitely_strange(explainer):
    model, predicted, surprise = explainer._known
    unseen = set(range(10)) - {j for j, trees in enumerate(model.dictionary.classes) if trees.samples}
    assert unseen  # the network is not trained
    assert all(math.isinf(s) == (int(j) in unseen) for j, s in zip(predicted, surprise, strict=True))


def test_a_network_without_couplings_is_refused(tmp_path):
    run = make_run(tmp_path, "conv_baseline_tiny_test")
    explainer = Explainer(run)
    with pytest.raises(UserError, match="no couplings"):
        explainer.explain(explainer.read("test:0"))


def test_classes_that_are_no_sums_of_votes_have_the_map_of_the_thesis_alone(tmp_path):
    run = make_run(tmp_path, "dr_capsnet_tiny_test", routing="em")
    explainer = Explainer(run, reference=10)
    found = explainer.explain(explainer.read("test:0"))
    assert found.evidence is not None
    assert found.contributions is None
    assert found.contribution is None
    data = found.as_json(explainer.info.classes)
    assert data["contribution"] is data["contribution_against"] is None
    assert "EMRouting" in data["contribution_obstacle"]


def test_a_share_of_few_images_is_told_as_a_count():
    assert rank_in_words(0.5, 4) == "2 of 4"
    assert rank_in_words(10 / 19, 19) == "10 of 19"
    assert rank_in_words(0.5, 20) == "50% of 20"
    assert rank_in_words(0.375, 1600) == "38% of 1,600"
