import json

import pytest
import torch
from safetensors.torch import save_file

from torchcaps.core import UserError
from torchcaps.models import config_as_json, create_model
from torchcaps.storage import save_weights
from torchcaps.train.loop.warm_start import adopt_widths, start_from
from torchcaps.train.recipe import build


def run_with(folder, *widths):
    folder.mkdir()
    (folder / "recipe.json").write_text(json.dumps({"model": {"trunk_widths": widths}}))
    return folder


def widths_in(out, **changes):
    model = {"name": "trunk_classifier_tiny_test"} | changes.pop("model", {})
    recipe = build({"model": model, "data": {"name": "synthetic_mnist"}, "epochs": 1, **changes})
    return adopt_widths(recipe, out).model.get("trunk_widths")


def test_the_widths_of_a_pruned_trunk_are_taken_over_unless_the_recipe_has_its_own(tmp_path):
    source, out = run_with(tmp_path / "source", 4, 5, 6, 7), run_with(tmp_path / "out", 8, 8, 8, 8)
    assert widths_in(out, start_from=str(source)) == [4, 5, 6, 7]
    assert widths_in(out, start_from=str(tmp_path / "gone")) == [8, 8, 8, 8]  # with which it was started
    own = {"trunk_widths": [1, 2, 3, 4]}
    assert widths_in(out, start_from=str(source), model=own) == [1, 2, 3, 4]
    assert widths_in(out) is None
    assert widths_in(tmp_path, start_from=str(tmp_path / "gone")) is None


def test_layers_are_shared_by_name_and_an_imported_trunk_is_found(tmp_path):
    source, network = (create_model("trunk_classifier_tiny_test", num_classes=n) for n in (4, 4))
    before = {name: values.clone() for name, values in network.state_dict().items()}
    save_weights(tmp_path / "trunk.safetensors", source.trunk.state_dict(), {"trunk": "mobilenet_tiny"})
    start_from(network, tmp_path / "trunk.safetensors")
    for name, values in network.state_dict().items():
        expected = source.state_dict()[name] if name.startswith("trunk.") else before[name]
        assert torch.equal(values, expected), name
    save_weights(tmp_path / "other.safetensors", {"x": torch.ones(1)}, {})
    with pytest.raises(UserError, match="no layer in common"):
        start_from(network, tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    ("model", "changed", "remedy"),
    [
        ("dr_capsnet_tiny_test", "stem.weight", r"the same sizes \(what stands under model: of the run's"),
        (
            "trunk_classifier_tiny_test",
            "classifier.weight",
            r"the same widths \(model.trunk_widths of the run's",
        ),
    ],
)
def test_only_a_network_with_a_trunk_is_told_of_trunk_widths(model, changed, remedy, tmp_path):
    network = create_model(model)
    state = network.state_dict()
    save_file(state | {changed: state[changed][:1].clone()}, tmp_path / "weights.safetensors")
    with pytest.raises(UserError, match=rf"{changed} is 1x\d+.* in .* and .* in this model; .*{remedy}"):
        start_from(network, tmp_path)


@pytest.mark.parametrize("model", ["efficient_capsnet_tiny_test", "trunk_classifier_tiny_test"])
def test_layers_of_another_number_of_classes_begin_anew(model, tmp_path):
    source, network = create_model(model, num_classes=4), create_model(model, num_classes=3)
    fresh = {name: values.clone() for name, values in network.state_dict().items()}
    config = config_as_json(source.config)
    save_weights(tmp_path / "weights.safetensors", source.state_dict(), {"config": config})
    start_from(network, tmp_path)
    given, anew = source.state_dict(), set()
    for name, values in network.state_dict().items():
        if given[name].shape != values.shape:
            anew.add(name)
        assert torch.equal(values, fresh[name] if name in anew else given[name]), name
    assert 0 < len(anew) < len(fresh)
    convolutions = {name: values for name, values in given.items() if values.ndim == 4}
    narrow = {name: values[:1].clone() for name, values in convolutions.items()}
    save_weights(tmp_path / "weights.safetensors", given | narrow, {"config": config})
    with pytest.raises(UserError, match="in this model"):
        start_from(network, tmp_path)


@pytest.mark.parametrize("kind", [torch.int64, torch.complex64])
def test_weights_that_are_no_floating_point_numbers_are_refused(kind, tmp_path):
    network = create_model("trunk_classifier_tiny_test", num_classes=4)
    state = network.state_dict()
    save_weights(
        tmp_path / "w.safetensors", state | {"classifier.weight": state["classifier.weight"].to(kind)}, {}
    )
    words = rf"start_from: .*w\.safetensors does not fit .* classifier.weight is of type {str(kind)[6:]}"
    with pytest.raises(UserError, match=words):
        start_from(network, tmp_path / "w.safetensors")
