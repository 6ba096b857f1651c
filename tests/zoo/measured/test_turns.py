"""A digit on a turned page: what the camera noted is followed, and what a network doubts is said."""

import json
import shutil
from base64 import b64encode
from contextlib import closing
from html import escape
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from zoo.conftest import packed_name, untrained_run
from zoo.handwriting import on_paper, photograph, small_note_on_a_table, stains, written

from torchcaps import explain
from torchcaps.explorer import Shelf, read_given
from torchcaps.explorer.service import Service
from torchcaps.storage import write_json
from torchcaps.zoo import better_turns, find_run, pack_run, packaged_weights, photo_predictor, predict
from torchcaps.zoo.entry import PACKAGED
from torchcaps.zoo.measured.turns import TURNED, MeasuredTurns, may_hint

from command import torchcaps

CLONE = Path(__file__).parents[3]
NAME = "efficient_capsnet_mnist.mnist"
PAGE = on_paper(written("3")).astype(np.uint8)
NOTED = {1: 0, 6: 1, 3: 2, 8: 3}  # quarters to the left that the page lies, by what the camera noted


@pytest.fixture(scope="module")
def reader():
    return photo_predictor(NAME)


def turned(page, quarters):
    return Image.fromarray(np.rot90(page, quarters).copy())


@pytest.mark.parametrize("kind", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("note", NOTED)
def test_a_page_is_set_upright_as_the_camera_noted(note, kind, reader, tmp_path):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = note
    turned(PAGE, NOTED[note]).save(tmp_path / f"page.{kind}", exif=exif)
    row = reader.answer_file(tmp_path / f"page.{kind}").row
    assert row["class"] == "3"
    assert "hint" not in row


@pytest.mark.parametrize(
    ("quarters", "way"), [(1, "a quarter to the right"), (2, "upside down"), (3, "a quarter to the left")]
)
def test_a_turned_page_is_doubted_in_words_and_the_answer_stays(quarters, way, reader):
    answer = reader.answer(turned(PAGE, quarters))
    assert answer.row["class"] != "3"
    assert answer.row["hint"].startswith(f"turned {way} it would be 3 (activation 0.9")
    assert answer.words.startswith(f"{answer.row['class']} (activation ")
    assert answer.row["hint"] in answer.words


@pytest.mark.parametrize("page", [small_note_on_a_table, stains], ids=lambda page: page.__name__)
def test_upright_digits_are_not_doubted(page, reader):
    assert not any("hint" in reader.answer(photograph(page, digit)).row for digit in "0123456789")


def test_a_network_without_good_hints_gives_none(tmp_path):
    turned(PAGE, 1).save(tmp_path / "page.png")
    assert "hint" not in predict("dr_capsnet_minimal.mnist", tmp_path / "page.png")[0]


def test_the_command_says_it_also_with_several_classes(tmp_path):
    turned(PAGE, 1).save(tmp_path / "page.png")
    assert "turned a quarter to the right it would be 3" in torchcaps("predict", NAME, tmp_path / "page.png")
    assert "; turned a quarter to the right" in torchcaps("predict", NAME, tmp_path / "page.png", "--top", 2)


@pytest.fixture
def doubted(reader, tmp_path):
    """A page that lies on its side, and what predict says of it."""
    path = tmp_path / "page.png"
    turned(PAGE, 1).save(path)
    return path, reader.answer_file(path).row["hint"]


def test_explain_says_it_in_the_same_words(doubted, tmp_path):
    path, hint = doubted
    assert f"); {hint}; " in torchcaps("explain", NAME, path, "--out", tmp_path)
    assert json.loads((tmp_path / "page.json").read_text())["hint"] == hint
    assert f"If {escape(hint)}" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_the_explorer_in_a_file_says_it_in_the_same_words(doubted, tmp_path):
    path, hint = doubted
    torchcaps("explain", NAME, path, "--out", tmp_path, "--explorer")
    assert f"If {hint}" in (tmp_path / "explorer.html").read_text()


def test_the_explorer_says_it_in_the_same_words(doubted):
    path, hint = doubted
    with closing(Shelf(read_given([NAME]), None, "cpu")) as shelf:
        content = b64encode(path.read_bytes()).decode()
        look = Service(shelf).answer("look", {"model": "0", "image": {"file": content}})
    assert look["words"].endswith(f"If {hint}")


def test_explain_does_not_doubt_an_upright_digit(tmp_path):
    Image.fromarray(PAGE).save(tmp_path / "page.png")
    found = explain(NAME, tmp_path / "page.png")
    assert found.explanation.as_json(found.classes)["hint"] is None
    assert "does it stand upright" not in found.page.to_html()


def test_a_turn_counts_where_it_gives_another_class_clearly():
    def said(*pairs):
        rows = torch.zeros(1, 4, 3)
        for number, (name, value) in enumerate(pairs):
            rows[0, number, name] = value
        return int(better_turns(rows))

    assert said((0, 0.6), (0, 0.5), (1, 0.9), (2, 0.8)) == 2
    assert said((0, 0.6), (0, 0.5), (1, 0.69), (2, 0.6)) == 0  # hardly surer
    assert said((0, 0.6), (0, 0.9), (1, 0.8), (2, 0.8)) == 0  # it would be the same
    assert said((0, 0.9), (1, 0.8), (1, 0.8), (2, 0.9)) == 0


def suite(upright=0.005, turned=0.6, **changes):
    rows = [{"group": "turned", "condition": "0°", "accuracy": 0.9, "hinted": upright}]
    for angle in ("90°", "180°", "270°"):
        row = {"group": "turned", "condition": angle, "accuracy": 0.25, "hinted": turned, "hinted_back": 0.5}
        rows.append(row)
    return {"suite": "turns", "limit": None, "runs": {"run": rows}, **changes}


@pytest.mark.parametrize(
    ("found", "is_trusted"),
    [
        (suite(), True),
        (suite(upright=0.01), False),
        (suite(turned=0.5), False),
        (suite(limit=100), False),  # too few to know one in a hundred
    ],
)
def test_hints_are_given_where_most_turned_and_few_upright_digits_get_one(found, is_trusted, tmp_path):
    assert not may_hint(tmp_path)
    write_json(tmp_path / "turns.json", found)
    assert may_hint(tmp_path) is is_trusted


def test_the_card_says_how_often(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    write_json(run / "turns.json", suite())
    entry = pack_run(run, packed_name("classification"), out=tmp_path / "out")
    assert "turns.json" in entry.sha256
    card = (tmp_path / "out" / entry.name / "card.md").read_text()
    assert "accuracy 25.0%, 25.0%, 25.0%; `torchcaps predict` says of 60.0%, 60.0%, 60.0% of these" in card
    assert "and of 0.50% of upright ones." in card
    assert "does not say that an image may be turned: it would say so of 4.00% of" in str(
        MeasuredTurns.from_plain(suite(upright=0.04))
    )


def test_an_own_run_gives_hints_once_that_is_measured(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(find_run(NAME), folder)
    turned(PAGE, 1).save(tmp_path / "page.png")
    assert "hint" in predict(folder, tmp_path / "page.png")[0]
    (folder / "turns.json").unlink()
    assert "hint" not in predict(folder, tmp_path / "page.png")[0]


def test_the_page_has_the_numbers_of_the_packaged_networks():
    page = " ".join((CLONE / "docs/zoo.md").read_text().split())
    false = {}
    for entry in packaged_weights():
        path = PACKAGED / entry.name / "turns.json"
        assert path.is_file() == (entry.prepare == "digit")
        if path.is_file():
            shares = MeasuredTurns.from_plain(json.loads(path.read_text())).shares
            false[entry.name] = 100 * shares["0°"]["hinted"]
            assert may_hint(path.parent) == (entry.name == NAME)
        if entry.name == NAME:
            first, second, third = (f"{100 * shares[angle]['hinted']:.1f} %" for angle in TURNED)
    assert f"for {first}, {second} and {third} of MNIST's test digits turned by" in page
    assert f"and for {false.pop(NAME):.2f} % of upright ones (" in page
    assert f"give it for {min(false.values()):.1f} to {max(false.values()):.1f} % of upright ones" in page
