"""What a command measured of a network of maps stands on its card, with the command."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from zoo.conftest import entry_in, packed_name

from torchcaps.core import UserError
from torchcaps.storage import write_json
from torchcaps.zoo.entry import PACKAGED
from torchcaps.zoo.packing.card import describe_entry
from torchcaps.zoo.packing.renew_cards import renewed

from command import torchcaps

CLONE = Path(__file__).parents[3]
NAME = "descriptor_capsules.naip"


def measured(weights, **changes):
    plan = {"places": 600, "views": 12, "offset": 35.0, "rotation": 6.0, "seed": 0}
    found = {"weights": weights, "recall_at_1": 0.25, "loss": 0.125, "images": 1440, "places": 120}
    return {**found, "plan": plan, "maps": [{"dates": ["spring_2009", "autumn_2016"]}], **changes}


@pytest.fixture
def packed(zoo, tmp_path):
    """A packed network of maps, and a function that puts what was measured of it beside its weights."""
    entry = entry_in(zoo / packed_name("retrieval"))
    shutil.copytree(zoo / entry.name, tmp_path / entry.name)

    def renew(**changes):
        found = measured(**{"weights": entry.sha256["weights.safetensors"], **changes})
        write_json(tmp_path / entry.name / "views.json", found)
        return renewed(entry, CLONE, tmp_path / entry.name)

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


def test_the_page_says_which_views_the_packaged_network_was_measured_on():
    found = json.loads((PACKAGED / NAME / "views.json").read_text())
    page = " ".join((CLONE / "docs/zoo.md").read_text().split())
    assert f"{found['images']:,} views of {found['places']} places" in page
    plan = found["plan"]
    assert f"--run {NAME} --places {plan['places']} --views {plan['views']}" in page
    patterns = re.search(r"torchcaps uav eval (.*?) (?:\\ )?--run", page).group(1).split()
    dates = [f"aerial/{date}.tif" for (ground,) in [found["maps"]] for date in ground["dates"]]
    assert all(sum(Path(date).match(pattern) for pattern in patterns) == 1 for date in dates)


@pytest.mark.slow
def test_the_command_of_the_card_measures_what_the_card_says():
    pytest.importorskip("rasterio")
    aerial = Path(os.environ.get("TORCHCAPS_DATA", "")) / "aerial"
    card = (PACKAGED / NAME / "card.md").read_text()
    words = re.search(r"`torchcaps (uav eval [^`]+)`", card).group(1).split()
    maps = [aerial / word for word in words if word.endswith(".tif")]
    if not all(path.is_file() for path in maps):
        pytest.skip("TORCHCAPS_DATA has no aerial images")
    found = json.loads(torchcaps(*words[:2], *maps, *words[2 + len(maps) :], "--device", "cpu", "--json"))
    stored = json.loads((PACKAGED / NAME / "views.json").read_text())
    assert found["maps"] == stored["maps"]
    assert found["recall_at_1"] == pytest.approx(stored["recall_at_1"], abs=1.5 / stored["images"])
    assert found["loss"] == pytest.approx(stored["loss"], rel=1e-4)
