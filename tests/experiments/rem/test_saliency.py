import numpy as np
import pytest
import torch
from experiments.made_rows import a_pair

from torchcaps.experiments.records import Details, Picture
from torchcaps.experiments.rem.saliency import deletions, draw_pairs, find_maps, share_on_object
from torchcaps.models import create_model
from torchcaps.parse import (
    CapsuleMap,
    ReceptiveField,
    contribution_maps,
    contributions,
    evidence_on_image,
    quantized,
)
from torchcaps.parse.places import capsule_maps, place_maps
from torchcaps.train.recipe import Data

from splits import split_of

PIXELS = CapsuleMap((8, 8, 1), ReceptiveField((0.0, 0.0), 1.0, 1.0))  # a capsule on each pixel


def test_saliency_counts_where_it_lies():
    maps = torch.zeros(1, 8, 8)
    maps[0, 2, 3], maps[0, 6, 6] = 3.0, 1.0
    is_object = torch.zeros(1, 8, 8)
    is_object[0, :4] = 1
    assert share_on_object(maps, is_object, PIXELS) == pytest.approx(0.75)


def test_an_even_map_has_the_share_of_the_object():
    is_object = torch.zeros(3, 8, 8)
    is_object[:, :, :2] = 1
    assert share_on_object(torch.ones(3, 8, 8), is_object, PIXELS) == pytest.approx(0.25)


def test_an_image_without_saliency_does_not_count():
    maps = torch.stack([torch.zeros(8, 8), torch.ones(8, 8)])
    is_object = torch.ones(2, 8, 8)
    assert share_on_object(maps, is_object, PIXELS) == pytest.approx(1.0)


def at_centres(shown, where):
    """The values of maps on an image where capsules look, (images, rows, columns)."""
    pixels = [int(where.field.centre(position, position)[0]) for position in range(where.grid[0])]
    return shown[:, pixels][:, :, pixels]


def test_maps_are_those_that_an_explanation_shows():
    data, pipeline = split_of(Data(name="synthetic_mnist"), "test")
    data = data.subset(list(range(4)))
    torch.manual_seed(0)
    network = create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10).eval()
    saliency, contribution, where = find_maps(network, data, pipeline, levels=11)
    with torch.no_grad(), quantized(network, 11):
        output = network(pipeline.for_evaluation(data.images).inputs, return_routing=True)
    trace, chosen = output.layers[-1], output.activations.argmax(1)
    places = capsule_maps(network)
    assert where == places[0]
    shown = evidence_on_image(trace, chosen, places, (28, 28))
    torch.testing.assert_close(at_centres(shown, where), saliency)
    parts = contributions(network, trace, chosen).parts
    shown = place_maps(contribution_maps(parts, places), places, (28, 28))
    torch.testing.assert_close(at_centres(shown, where), contribution)
    falls = deletions(network, data, pipeline, levels=11)
    assert list(falls) == ["deletion_saliency", "deletion_contribution", "deletion_random"]


def test_capsules_above_a_convolutional_layer_have_maps_too():
    data, pipeline = split_of(Data(name="synthetic_imagenette"), "test")
    torch.manual_seed(0)
    sizes = {"in_channels": 3, "image_size": 64, "num_classes": 10, "decoder": "none"}
    network = create_model("effconv_capsnet_tiny_test", **sizes).eval()
    saliency, contribution, where = find_maps(network, data.subset(list(range(3))), pipeline, levels=21)
    assert saliency.shape == contribution.shape == (3, 12, 12)
    assert where.grid == (12, 12, 3)
    middle = (where.field.centre(0, 0)[0] + where.field.centre(11, 11)[0]) / 2
    assert middle == pytest.approx(31.5, abs=0.5)


def test_rows_made_before_contributions_are_drawn_without_them(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "torchcaps.experiments.rem.saliency.draw_saliency", lambda panels: drawn.append(panels)
    )
    monkeypatch.setattr("torchcaps.experiments.rem.saliency.to_png", lambda figure, scale: b"")
    pictures = {"images": Picture.pack(torch.rand(2, 1, 8, 8))}
    old = {"maps": np.array([[[1.0, 0.6], [1.0, 0.6]]] * 2)}
    new = old | {"contributions": np.array([[[1.0, 0.0], [0.0, 0.0]]] * 2)}
    rows = [
        row
        for network, series in (("A, n", new), ("B, n", old))
        for row in a_pair(network, "peak", 1.0, 1.0, details=Details(series=series, pictures=pictures))
    ]
    draw_pairs(rows)
    (panels,) = drawn
    thesis = [f"saliency (thesis)\n{way} REM\npeak 1.25" for way in ("without", "with")]
    ours = [f"contribution\n{way} REM\npeak 4.00" for way in ("without", "with")]
    assert {name: list(panel.maps) for name, panel in panels.items()} == {"A": [*thesis, *ours], "B": thesis}
    assert all(maps.shape == (2, 8, 8) for panel in panels.values() for maps in panel.maps.values())
