import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.core.types import LayerTrace, Routed
from torchcaps.models import create_model
from torchcaps.parse import (
    capsule_maps,
    contribution_map,
    contribution_maps,
    evidence_on_image,
    fully_connected,
    place_map,
    quantized,
    saliency_map,
)
from torchcaps.parse.places import place_maps


def forward(family):
    torch.manual_seed(0)
    model = create_model(f"{family}_tiny_test").eval()
    with torch.no_grad(), quantized(model, 11):
        return model, model(torch.rand(2, *model.image_shape), return_routing=True)


@pytest.mark.parametrize(
    ("family", "layers", "grids"),
    [
        ("dr_capsnet", 1, [(2, 2, 2)]),
        ("gamma_capsnet", 2, [(2, 2, 2)]),
        ("deepcaps", 1, [(3, 3, 2), (2, 2, 2)]),
        ("efficient_capsnet", 1, []),
        ("backbone_capsnet", 1, []),
        ("parse_capsnet", 3, []),
    ],
)
def test_capsules_stand_where_the_family_puts_them(family, layers, grids):
    model, output = forward(family)
    chain = fully_connected(output.layers)
    assert len(chain) == layers
    in_caps = chain[0].children.activations.flatten(1).shape[1]
    maps = capsule_maps(model)
    assert [each.grid for each in maps] == grids
    assert not maps or sum(each.capsules for each in maps) == in_caps


@pytest.mark.parametrize("family", ["em_capsnet", "effconv_capsnet"])
def test_a_tree_begins_after_the_last_convolution(family):
    model, output = forward(family)
    (last,) = fully_connected(output.layers)
    maps = capsule_maps(model)
    assert sum(each.capsules for each in maps) in (0, last.children.activations.shape[1])


def placed(values, where):
    """At the capsules' centres their values, around them the lowest of the map."""
    image = torch.empty(len(values), 20, 20)
    for number, one in enumerate(values):
        inside = place_map(one[None], (20, 20), where.field)[0]
        covered = place_map(torch.ones_like(one)[None], (20, 20), where.field)[0]
        image[number] = inside + (1 - covered) * one.min()
    return image


def test_the_evidence_of_two_maps_is_their_sum():
    model = create_model("deepcaps_tiny_test")
    maps = capsule_maps(model)
    generator = torch.Generator().manual_seed(0)
    activations = torch.rand(2, 26, generator=generator)
    coupling = torch.rand(2, 26, 4, generator=generator)
    chosen = torch.tensor([1, 3])
    routed = Routed(torch.zeros(2, 4, 6), torch.zeros(2, 4), coupling)
    found = evidence_on_image(
        LayerTrace(Capsules(torch.zeros(2, 26, 4), activations), routed), chosen, maps, (20, 20)
    )
    first = saliency_map(activations[:, :18], coupling[:, :18], chosen, (3, 3, 2))
    second = saliency_map(activations[:, 18:], coupling[:, 18:], chosen, (2, 2, 2))
    assert_close(found, placed(first, maps[0]) + placed(second, maps[1]))


def test_the_contributions_of_two_maps_are_their_sum():
    maps = capsule_maps(create_model("deepcaps_tiny_test"))
    parts = torch.randn(2, 26, generator=torch.Generator().manual_seed(0))
    first, second = contribution_map(parts[:, :18], (3, 3, 2)), contribution_map(parts[:, 18:], (2, 2, 2))
    found = place_maps(contribution_maps(parts, maps), maps, (20, 20))
    assert_close(found, placed(first, maps[0]) + placed(second, maps[1]))


def test_a_network_of_maps_alone_has_no_trees():
    _, output = forward("segcaps")
    with pytest.raises(UserError, match="no parse trees"):
        fully_connected(output.layers)


def test_a_map_of_one_place_beside_a_larger_one_is_kept():
    """Its capsules are among those that vote."""
    maps = capsule_maps(create_model("deepcaps_tiny_test", image_size=12))
    assert [each.grid[:2] for each in maps] == [(2, 2), (1, 1)]
