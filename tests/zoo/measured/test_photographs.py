"""What the suite of photographs found stands on cards and in a table, and its stored files are whole."""

import json

import pytest
from zoo.conftest import packed_name, untrained_run

from torchcaps.core import UserError
from torchcaps.storage import checksum_of, write_json
from torchcaps.suites.photographs.conditions import EMPTY, GROUPS
from torchcaps.zoo import pack_run, packaged_weights, render_photographs
from torchcaps.zoo.entry import PACKAGED
from torchcaps.zoo.measured import MeasuredPhotographs

NAME = "efficient_capsnet_mnist.mnist"


def row(group, condition, right, refused=0.0):
    shares = {"read_right": right, "refused": refused, "read_wrong": 1 - right - refused}
    return {"group": group, "condition": condition, **shares}


def suite(**changes):
    rows = [
        row("page", "plain", 0.99),
        row("light", "dim", 0.75, 0.05),
        row("all at once", "some of these", 0.5),
        {"group": "no digit", "condition": "plain", "refused": 1.0},
        {"group": "no digit", "condition": "ruled", "refused": 0.25},
    ]
    made = {"limit": 1000, "commit": "abc", "device": "cpu, 1 threads"}
    return {"suite": "photographs", "runs": {"run": rows}, **made, **changes}


def test_the_card_says_how_many_are_read_and_that_they_are_drawn(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    write_json(run / "photographs.json", suite())
    entry = pack_run(run, packed_name("classification"), out=tmp_path / "out")
    assert "photographs.json" in entry.sha256
    card = (tmp_path / "out" / entry.name / "card.md").read_text()
    assert "Photographs that were drawn, not taken, of 1,000 test digits" in card
    assert "99.0% are read right on a plain sheet, 75.0% under the hardest single change (light: dim)" in card
    assert "50.0% under several at once; of sheets without a digit, 100.0% are refused (plain), 25.0%" in card


def test_a_file_without_all_groups_is_not_what_the_suite_prints():
    with pytest.raises(UserError, match=r"photographs\.json is not what torchcaps eval"):
        MeasuredPhotographs.from_plain(suite(runs={"run": [row("page", "plain", 1.0)]}))


def stored():
    return {
        entry.name: path
        for entry in packaged_weights()
        if (path := PACKAGED / entry.name / "photographs.json").is_file()
    }


def test_stored_files_have_every_condition_of_the_suite_and_say_where_they_were_made():
    expected = {(group, name) for group, conditions in GROUPS.items() for name in conditions}
    expected |= {("no digit", name) for name in EMPTY} | {("all at once", "some of these")}
    assert NAME in stored()
    for name, path in stored().items():
        content = json.loads(path.read_text())
        assert set(MeasuredPhotographs.from_plain(content).shares) == expected
        assert (
            content["command"]
            == f"torchcaps eval {name} --suite photographs --limit {content['limit']} --json"
        )
        assert content["commit"]
        assert not content["commit"].endswith("+")  # of code that is in the history
        assert set(content["versions"]) == {"torchcaps", "torch", "python"}


def test_the_entry_knows_the_checksum_of_the_stored_file():
    entries = {entry.name: entry for entry in packaged_weights()}
    for name, path in stored().items():
        assert entries[name].sha256["photographs.json"] == checksum_of(path)


def test_the_table_has_a_row_for_each_condition_and_a_column_for_each_network():
    lines = [line for line in render_photographs().splitlines() if line.startswith("|")]
    assert all(f"`{name}`" in lines[0] for name in stored())
    conditions = sum(map(len, GROUPS.values())) + len(EMPTY) + 1
    assert len(lines) == 2 + conditions
