import pytest
from safetensors.torch import save_file

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.train.loop.warm_start import start_from


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
