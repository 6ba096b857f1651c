from pathlib import Path

import numpy as np
import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import FileImages, LabelledImages, dataset_info, load_dataset
from torchcaps.models import create_model
from torchcaps.parse import analyse, collect_keys, count_trees, evened, quantized, some_images
from torchcaps.train import Pipeline
from torchcaps.train.recipe import Data


@pytest.fixture(scope="module")
def split():
    data = load_dataset("synthetic_mnist", "test").subset(range(24))
    return data, Pipeline(Data(name="synthetic_mnist"), dataset_info("synthetic_mnist"))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return create_model("gamma_capsnet_tiny_test", image_size=28, num_classes=10)


def test_an_analysis_is_what_image_by_image_gives(model, split):
    data, pipeline = split
    found = analyse(model, data, pipeline, levels=(11, 6), batch_size=16)
    assert model.training  # as before
    model.eval()
    right, right_quantized, keys = 0, 0, []
    for image, label in zip(data.images, data.labels, strict=True):
        inputs = pipeline.for_evaluation(image[None])[1]
        with torch.no_grad():
            right += int(model(inputs).activations.argmax() == label)
            with quantized(model, (11, 6)):
                output = model(inputs, return_routing=True)
        winner = int(output.activations.argmax())
        right_quantized += int(winner == label)
        column = output.layers[-1].routed.coupling[0, :, winner].double().numpy()
        keys.append((winner, tuple(np.rint(column * 5).astype(int))))
    assert (found.images, found.accuracy, found.quantized_accuracy) == (24, right / 24, right_quantized / 24)
    assert [
        (int(p), tuple(row)) for p, row in zip(found.keys.predicted, found.keys.indices, strict=True)
    ] == keys
    assert found.dictionary.num_keys == len(set(keys))
    assert found.as_json()["keys"] == len(set(keys))


def test_images_that_stay_in_their_files_are_analysed_as_those_in_memory(model, split):
    data, pipeline = split
    files = FileImages([Path(str(n)) for n in range(len(data))], lambda path: data.images[int(path.name)])
    kept = LabelledImages(files, data.labels, data.classes)
    found, expected = (analyse(model, each, pipeline, batch_size=10) for each in (kept, data))
    assert found.as_json() == expected.as_json()
    assert (found.keys.indices == expected.keys.indices).all()


def test_even_couplings_are_those_of_one_iteration(split):
    torch.manual_seed(0)
    routed, single = (
        create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10, routing=routing).eval()
        for routing in ("dynamic", {"name": "dynamic", "iterations": 1})
    )
    single.load_state_dict(routed.state_dict())
    data, pipeline = split
    inputs = pipeline.for_evaluation(data.images).inputs
    with torch.no_grad():
        expected = single(inputs).activations
        before = routed(inputs).activations
        with evened(routed):
            torch.testing.assert_close(routed(inputs).activations, expected)
        assert torch.equal(routed(inputs).activations, before)
    hits = int((expected.argmax(1) == data.labels).sum())
    assert analyse(routed, data, pipeline).even_accuracy == hits / len(data)


def test_the_batch_size_does_not_matter(model, split):
    small, large = (collect_keys(model, *split, levels=11, batch_size=size) for size in (7, 24))
    assert (small.indices == large.indices).all()
    assert (small.predicted == large.predicted).all()


def test_classes_that_are_never_predicted_are_named(model, split):
    found = analyse(model, *split).as_json()
    rows = {row["class"]: row for row in found["classes"]}
    assert set(found["never_predicted"]) == {name for name, row in rows.items() if not row["images"]}
    assert sum(row["images"] for row in rows.values()) == 24
    assert found["never_predicted"]  # an untrained network does not name all ten
    assert all(rows[name]["entropy"] is None for name in found["never_predicted"])


def test_an_even_split_in_the_class_layer_is_one_tree(split):
    model = create_model(
        "deepcaps_tiny_test", image_size=28, num_classes=10, routing={"name": "dynamic", "iterations": 1}
    )
    trees = count_trees(collect_keys(model, *split))
    assert trees.entropy == 0
    assert trees.num_keys == 10 - len(trees.empty_classes)


def test_nothing_to_analyse_is_refused(model, split):
    data, pipeline = split
    with pytest.raises(UserError, match="no images"):
        analyse(model, data.subset([]), pipeline)
    with pytest.raises(UserError, match="no couplings"):
        analyse(create_model("conv_baseline_tiny_test", image_size=28, num_classes=10), data, pipeline)


def test_some_images_are_drawn_from_all_and_always_the_same(split):
    data, _ = split
    some = some_images(data, 20)
    assert len(some) == 20
    assert len(some.labels.unique()) > 2
    assert torch.equal(some.images, some_images(data, 20).images)
    assert some_images(data, None) is some_images(data, 24) is data
    with pytest.raises(UserError, match="at least 1"):
        some_images(data, 0)


def test_a_network_that_is_broken_is_named_so(model, split):
    with torch.no_grad():
        model.classes.weight.fill_(float("nan"))
    with pytest.raises(UserError, match="not finite"):
        analyse(model, *split)
    with pytest.raises(UserError, match="not finite"):
        collect_keys(model, *split)
