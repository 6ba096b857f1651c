import pytest
import torch

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.prune import Lobster, measure_units


def test_each_weight_is_a_unit():
    network = create_model("dr_capsnet_tiny_test")
    units = measure_units(network, Lobster())
    assert len(units.each) == sum(weight.numel() for weight in units.weights)
    assert torch.equal(units.norms[0], network.stem.weight.abs())


@torch.no_grad()
def test_a_capsule_is_the_matrices_it_votes_through():
    network = create_model("gamma_capsnet_tiny_test")
    units = measure_units(network, Lobster(group="capsule"))
    layers = network.hidden, network.classes
    expected = [float(matrix.square().mean().sqrt()) for layer in layers for matrix in layer.weight]
    assert units.each.tolist() == pytest.approx(expected)
    assert units.norms[1].shape == (network.classes.in_caps, 1, 1, 1)


@torch.no_grad()
@pytest.mark.parametrize("family", ["dr_capsnet", "efficient_capsnet"])
def test_a_type_is_its_filters_and_the_matrices_at_all_its_positions(family):
    network = create_model(f"{family}_tiny_test")
    filters, matrices = network.primary.conv.weight, network.classes.weight
    types, pose = network.primary.types, network.classes.in_pose
    units = measure_units(network, Lobster(group="type"))
    assert len(units.each) == types
    for kind in range(types):
        parts = [filters[kind * pose : (kind + 1) * pose].flatten()]
        parts += [matrices[child].flatten() for child in range(kind, len(matrices), types)]
        expected = float(torch.cat(parts).square().mean().sqrt())
        assert float(units.each[kind]) == pytest.approx(expected)
        assert float(units.norms[0][kind * pose + 1]) == pytest.approx(expected)
        assert float(units.norms[1][len(matrices) - types + kind]) == pytest.approx(expected)


@torch.no_grad()
def test_a_type_of_which_only_some_capsules_vote_has_their_matrices():
    network = create_model("dr_capsnet_tiny_test", voters=5)
    network.classes.voters.copy_(torch.tensor([0, 1, 2, 4, 7]))  # of two types that alternate
    filters, matrices = network.primary.conv.weight, network.classes.weight
    units = measure_units(network, Lobster(group="type"))
    for kind, rows in enumerate(([0, 2, 3], [1, 4])):
        parts = [filters[4 * kind : 4 * kind + 4].flatten(), matrices[rows].flatten()]
        expected = float(torch.cat(parts).square().mean().sqrt())
        assert float(units.each[kind]) == pytest.approx(expected)
        assert units.norms[1].flatten()[rows].tolist() == pytest.approx([expected] * len(rows))


@pytest.mark.parametrize("family", ["dr_capsnet", "gamma_capsnet", "efficient_capsnet"])
def test_types_that_share_their_matrices_are_refused(family):
    network = create_model(f"{family}_tiny_test", routing="shared_matrix")
    with pytest.raises(UserError, match=r"share theirs; set pruning\.group=weight"):
        measure_units(network, Lobster(group="type"))


@pytest.mark.parametrize("share", ["all", "positions", "none"])
def test_types_that_do_not_feed_the_fully_connected_layer_are_refused(share):
    network = create_model("effconv_capsnet_tiny_test", share=share)
    with pytest.raises(UserError, match=r"group=type needs .*; .* or set pruning\.group=weight"):
        measure_units(network, Lobster(group="type"))


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("dr_capsnet_tiny_test", {"group": "capsule", "layers": "stem"}, "group=capsule needs"),
        ("dr_capsnet_tiny_test", {"group": "type", "layers": "classes"}, "group=type needs"),
        ("deepcaps_tiny_test", {"group": "type"}, "group=type needs"),
        ("gamma_capsnet_tiny_test", {"group": "type", "layers": "[pc]*"}, "group=type needs"),
        ("dr_capsnet_tiny_test", {"layers": "nothing"}, "none is named 'nothing'"),
    ],
)
def test_networks_without_such_units_are_refused(model, settings, message):
    with pytest.raises(UserError, match=message):
        measure_units(create_model(model), Lobster(**settings))
