"""Drawn photographs of digits: the same pictures each time, and read as `predict` reads them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import LabelledImages, load_dataset
from torchcaps.suites import Material, Measurement, measure_run, table_of
from torchcaps.suites.photographs import measure
from torchcaps.suites.photographs.camera import take_photograph
from torchcaps.suites.photographs.conditions import EMPTY, GROUPS, mixed
from torchcaps.suites.photographs.measure import DIGITS
from torchcaps.suites.photographs.pen import trace
from torchcaps.suites.photographs.scene import Scene, draw_chance, middle_of_digit, sheet_from_photograph
from torchcaps.train import Answer, load_labelled
from torchcaps.zoo import NoDigitError, load_pretrained, predict

CONDITIONS = {
    **{f"{group} {name}": changes for group, own in GROUPS.items() for name, changes in own.items()},
    **{f"no digit {name}": changes for name, changes in EMPTY.items()},
}
SMALL = {name: changes for name, changes in CONDITIONS.items() if "A4" not in name}


@pytest.fixture(scope="module")
def digits5k():
    data = load_dataset("mnist5k", "test")
    return data.images[::100]


@pytest.fixture(scope="module")
def written(digits5k):
    return trace(digits5k)


@pytest.fixture(scope="module")
def reader():
    return load_pretrained("dr_capsnet_small.mnist5k-types")


def levels(photograph):
    return np.asarray(photograph, dtype=float)


def test_a_pen_of_its_own_width_writes_the_test_image_again(digits5k, written):
    for image, way in zip(digits5k[:, 0].float() / 255, written, strict=True):
        again = torch.nn.functional.avg_pool2d((way.needed <= way.width).float()[None], 4)[0]
        assert ((again - image) ** 2).sum() < 0.1 * (image**2).sum()


def test_a_wider_pen_inks_more_and_all_that_a_thinner_one_does(written):
    for way in written:
        shares = [float((way.needed <= width).float().mean()) for width in (0.5, 1.0, 2.0, 4.0)]
        assert shares == sorted(shares)
        assert shares[0] < shares[-1]


def test_an_empty_image_is_written_with_no_ink():
    (way,) = trace(torch.zeros(1, 1, 28, 28, dtype=torch.uint8))
    assert way.needed.isinf().all()


def test_middle_lines_are_thin_and_as_long_as_strokes():
    image = torch.zeros(1, 1, 28, 28, dtype=torch.uint8)
    image[:, :, 4:24, 12:16] = 255
    (way,) = trace(image)
    assert way.width == pytest.approx(4, abs=0.6)
    line = (way.needed < 0.3).nonzero()
    assert len(line) < 250  # of the 1,280 places of the stroke
    assert line[:, 0].max() - line[:, 0].min() > 60


@pytest.mark.parametrize("name", SMALL)
def test_a_photograph_repeats_itself_and_another_digit_gives_another(name, written):
    scene, chances = replace(Scene(), **SMALL[name]), [draw_chance(number) for number in (0, 1)]
    of = None if name.startswith("no digit") else written[0]
    first, again = (levels(take_photograph(of, scene, chances[0])) for _ in range(2))
    assert first.shape == tuple(side // scene.shrink for side in reversed(scene.size)) or scene.shrink > 1
    assert np.array_equal(first, again)
    assert not np.array_equal(first, levels(take_photograph(of, scene, chances[1])))


def test_ink_is_where_the_geometry_has_it_and_nowhere_else(written):
    scene, chance = Scene(noise=0.0, quality=100, turn=20.0, tilt=30.0), draw_chance(3)
    page, empty = (levels(take_photograph(of, scene, chance)) for of in (written[2], None))
    rows, columns = np.nonzero(empty - page > 40)
    places = sheet_from_photograph(scene, chance) @ [columns + 0.5, rows + 0.5, np.ones(len(rows))]
    away = places[:2] / places[2] - np.array(middle_of_digit(scene, chance))[:, None]
    assert len(rows) > 100
    assert np.abs(away).max() < 0.75 * scene.digit
    assert np.ptp(away[1]) == pytest.approx(scene.digit, rel=0.15)


def test_light_on_dark_has_ink_that_is_brighter_than_the_sheet(written):
    chance = draw_chance(0)
    scene = replace(Scene(), **GROUPS["tones"]["white on black"])
    change = levels(take_photograph(written[0], scene, chance)) - levels(take_photograph(None, scene, chance))
    assert change.max() > 100 > -change.min()


@pytest.mark.parametrize("name", [name for name in SMALL if name.startswith("sheet ")])
def test_what_is_on_a_sheet_is_seen(name):
    chance = draw_chance(2)
    plain, changed = (
        levels(take_photograph(None, replace(Scene(), **each), chance)) for each in ({}, SMALL[name])
    )
    assert np.abs(plain - changed).max() > 25


def test_a_mix_changes_about_half_of_the_groups_and_writes_with_no_pen_that_is_too_wide():
    scenes = [mixed(number) for number in range(200)]
    assert scenes == [mixed(number) for number in range(200)]
    assert 0.4 < np.mean([scene.light == "even" and scene.exposure == 1 for scene in scenes]) < 0.6
    assert all(scene.pen is None or scene.pen <= scene.digit / 4 for scene in scenes)
    assert len({scene.size for scene in scenes}) == 3


def refuse_every_third(monkeypatch):
    """Every third photograph is refused, and all others are called "1"."""
    asked = []

    def answer(self, photograph):
        asked.append(photograph)
        if len(asked) % 3 == 0:
            raise NoDigitError("none")
        return Answer({"class": "1"}, "1")

    monkeypatch.setattr(measure.PhotoPredictor, "answer", answer)


def measured(run, monkeypatch, count=6):
    """The suite with four conditions of small pictures, on digits of which every other is a one."""
    small = {"size": (60, 40), "scale": 1.0}
    monkeypatch.setattr(measure, "GROUPS", {"page": {"plain": small, "dim": {**small, "exposure": 0.5}}})
    monkeypatch.setattr(measure, "EMPTY", {"plain": small})
    monkeypatch.setattr(measure, "mixed", lambda number: Scene(**small))
    data, pipeline = load_labelled(run, "test")
    labels = torch.arange(count) % 2
    some = LabelledImages(data.images[:count], labels, data.classes)
    return measure.measure_photographs(Material(run, some, pipeline, None, None))


def test_right_refused_and_wrong_are_shares_of_all_digits_and_empty_sheets_are_refused(reader, monkeypatch):
    refuse_every_third(monkeypatch)
    found = measured(reader, monkeypatch)
    assert [(each.group, each.condition) for each in found] == [
        ("page", "plain"),
        ("page", "dim"),
        ("all at once", "some of these"),
        ("no digit", "plain"),
    ]
    *read, empty = (each.metrics for each in found)
    for metrics in read:  # of 0 1 0 1 0 1 the third and the sixth are refused
        assert metrics == {"read_right": 2 / 6, "refused": 2 / 6, "read_wrong": 2 / 6}
    assert empty == {"refused": 2 / 6}


def test_a_mistake_that_is_no_missing_digit_is_not_counted_as_refused(reader, monkeypatch):
    def answer(self, photograph):
        raise UserError("something else")

    monkeypatch.setattr(measure.PhotoPredictor, "answer", answer)
    with pytest.raises(UserError, match="something else"):
        measured(reader, monkeypatch)


def test_the_suite_answers_as_predict_does(reader, monkeypatch, tmp_path):
    """Photographs that the suite takes, stored as files and given to `predict`."""
    taken, said = [], []

    def take(*words):
        taken.append(take_photograph(*words))
        return taken[-1]

    def ask(*words):
        said.append(answer(*words))
        return said[-1]

    answer = measure._answer
    changes = {"GROUPS": {}, "EMPTY": {}, "mixed": lambda number: Scene()}
    for name, value in {**changes, "take_photograph": take, "_answer": ask}.items():
        monkeypatch.setattr(measure, name, value)
    measure_run(reader, "photographs", limit=3)
    for number, photograph in enumerate(taken):
        photograph.save(tmp_path / f"{number}.png")
    assert [row["class"] for row in predict(reader, tmp_path)] == said
    assert len(said) == 3


def test_a_run_on_other_data_is_refused(digits):
    with pytest.raises(UserError, match="needs a run on mnist or mnist5k"):
        measure_run(digits, "photographs", limit=1)


def test_without_a_limit_the_suite_photographs_few_digits(reader, monkeypatch):
    asked = []
    small = Scene(size=(60, 40), scale=1.0)
    changes = {"GROUPS": {}, "EMPTY": {}, "mixed": lambda number: small}
    for name, value in {**changes, "_answer": lambda *words: asked.append(words)}.items():
        monkeypatch.setattr(measure, name, value)
    measure_run(reader, "photographs")
    assert len(asked) == DIGITS


def test_few_metrics_of_one_run_are_columns():
    rows = [
        Measurement("page", "plain", {"read_right": 0.5, "refused": 0.25, "read_wrong": 0.25}),
        Measurement("no digit", "plain", {"refused": 1.0}),
    ]
    assert table_of({"mine": rows}) == [
        {"condition": "page plain", "read right": "50.00%", "refused": "25.00%", "read wrong": "25.00%"},
        {"condition": "no digit plain", "read right": "-", "refused": "100.00%", "read wrong": "-"},
    ]


@pytest.mark.slow
def test_the_packaged_network_reads_most_photographs_of_a_plain_sheet(reader, monkeypatch):
    changes = {"GROUPS": {"page": {"plain": {}}}, "EMPTY": {"plain": {}}, "mixed": lambda number: Scene()}
    for name, value in changes.items():
        monkeypatch.setattr(measure, name, value)
    plain, _, empty = measure_run(reader, "photographs", limit=10)
    assert plain.metrics["read_right"] >= 0.8
    assert empty.metrics == {"refused": 1.0}
