"""What a command measured of a network of maps stands on its card, with the command."""

import shutil
from pathlib import Path

import pytest
from zoo.conftest import packed_name

from torchcaps.core import UserError
from torchcaps.storage import write_json
from torchcaps.zoo import find_entry
from torchcaps.zoo.card import describe_entry
from torchcaps.zoo.renew_cards import renewed

CLONE = Path(__file__).parents[2]


def measured(weights, **changes):
    plan = {"places": 600, "views": 12, "offset": 35.0, "rotation": 6.0, "seed": 0}
    found = {"weights": weights, "recall_at_1": 0.25, "loss": 0.125, "images": 1440, "places": 120}
    return {**found, "plan": plan, "maps": [{"dates": ["spring_2009", "autumn_2016"]}], **changes}


@pytest.fixture
def packed(zoo, tmp_path):
    """A packed network of maps, and a function that puts what was measured of it beside its weights."""
    entry = find_entry(packed_name("retrieval"), zoo)
    shutil.copytree(zoo / entry.name, tmp_path / entry.name)

    def renew(**changes):
        found = measured(**{"weights": entry.sha256["weights.safetensors"], **changes})
        write_json(tmp_path / entry.name / "views.json", found)
        return renewed(entry, CLONE, tmp_path)

    return entry, tmp_path / entry.name, renew


def test_the_card_has_the_measured_numbers_the_views_and_the_command(packed):
    before, folder, renew = packed
    entry = renew()
    assert entry.metrics == {"test_recall_at_1": 0.25, "test_loss": 0.125}
    assert set(entry.sha256) - set(before.sha256) == {"views.json"}
    card = describe_entry(entry, folder)
    assert "recall at 1 25.00%, loss 0.1250, of this one run, of 1,440 views of 120 places" in card
    command = f"spring_2009.tif autumn_2016.tif --run {entry.name} --places 600 --views 12`"
    assert f"`torchcaps uav eval {command}" in card
    assert "in the precision of its training" not in card


def test_an_offset_that_is_not_the_usual_one_is_part_of_the_command(packed):
    _, folder, renew = packed
    entry = renew(plan={"places": 60, "views": 5, "offset": 12.5})
    assert "--places 60 --views 5 --offset 12.5`" in describe_entry(entry, folder)


def test_numbers_of_other_weights_are_refused(packed):
    with pytest.raises(UserError, match="of other weights"):
        packed[2](weights="0" * 64)


@pytest.mark.parametrize("changes", [{"maps": []}, {"plan": None}, {"recall_at_1": None}, {"images": "many"}])
def test_a_damaged_file_is_named(packed, changes):
    with pytest.raises(UserError, match=r"views\.json is not what torchcaps uav eval"):
        packed[2](**changes)
