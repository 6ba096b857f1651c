import json

import numpy as np
import pytest
import torch

from torchcaps.core import UserError
from torchcaps.experiments.records import Details, Picture


def test_pictures_survive_as_text_to_half_a_level_of_brightness():
    pictures = torch.rand(3, 2, 5, 7, generator=torch.Generator().manual_seed(0))
    back = Picture.pack(pictures).unpack()
    assert back.shape == (3, 2, 5, 7)
    assert np.abs(back - pictures.numpy()).max() <= 0.5 / 15 + 1e-6


def test_what_leaves_the_range_is_clipped():
    assert Picture.pack(torch.tensor([-1.0, 0.0, 1.0, 2.0])).unpack().tolist() == [0, 0, 1, 1]


def test_details_come_back_from_json_and_empty_ones_take_no_room():
    details = Details(
        series={"epoch": np.array([1, 2]), "maps": np.array([[0.5, 0.125]])},
        names=("cat", "dog"),
        pictures={"images": Picture.pack(torch.rand(2, 3))},
        trees=("{}",),
    )
    content = json.loads(json.dumps(details.as_json()))
    assert json.loads(json.dumps(Details.from_json(content).as_json())) == content
    assert content["series"] == {"epoch": [1, 2], "maps": [[0.5, 0.125]]}
    assert Details().as_json() == {}
    assert not Details.from_json({})


def test_results_of_older_runs_hold_all_kinds_in_their_curve():
    picture = {"shape": [1], "pixels": Picture.pack(torch.zeros(1)).pixels}
    mixed = {"in_tree": [1.0], "labels": [3], "classes": ["cat"], "images": picture, "trees": ["{}"]}
    found = Details.from_json({"curve": mixed})
    assert {name: values.tolist() for name, values in found.series.items()} == {"in_tree": [1], "labels": [3]}
    assert (found.names, found.trees, list(found.pictures)) == (("cat",), ("{}",), ["images"])


@pytest.mark.parametrize(
    "content",
    [
        {"series": {"a": [1, [2]]}},
        {"series": 3},
        {"names": 3},
        {"pictures": {"a": {"shape": [1]}}},
        {"pictures": ["a"]},
        {"trees": None},
        {"curve": [1]},
    ],
)
def test_damaged_details_are_named(content):
    with pytest.raises(UserError, match="its series, names, pictures or trees are damaged"):
        Details.from_json(content)
