"""Suites measure what they say, on small runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.core.metric import METRICS
from torchcaps.data import CORRUPTIONS, FileImages, LabelledImages, Preprocess, corrupt_images, load_dataset
from torchcaps.suites import (
    SUITES,
    Material,
    Measurement,
    affine,
    corruption,
    draw_suite,
    draw_test_images,
    measure_run,
    overlap,
    overlay_pairs,
    partwhole,
    table_of,
    turns,
    viewpoint,
)
from torchcaps.suites.affine import transform
from torchcaps.suites.viewpoint import has_novel_views, views_of
from torchcaps.train import evaluate_run, load_labelled
from torchcaps.viz import draw_dots
from torchcaps.zoo import load_pretrained


def by_condition(found):
    return {(each.group, each.condition): each.metrics for each in found}


@pytest.mark.parametrize("suite", ["affine", "corruption", "turns"])
def test_unchanged_images_have_the_accuracy_of_the_evaluation(digits, suite):
    first = measure_run(digits, suite)[0]
    assert first.metrics["accuracy"] == pytest.approx(evaluate_run(digits)["accuracy"])


@pytest.mark.parametrize("suite", ["affine", "corruption", "overlap", "turns"])
def test_a_suite_repeats_itself_and_its_metrics_are_known(digits, suite):
    found = measure_run(digits, suite, limit=40)
    assert found == measure_run(digits, suite, limit=40)
    assert len(by_condition(found)) == len(found)
    for each in found:
        assert all(name in METRICS and 0 <= value <= 1 for name, value in each.metrics.items())


@pytest.mark.parametrize("suite", ["turns", "overlap"])
def test_images_that_stay_in_their_files_are_measured_as_those_in_memory(digits, suite, monkeypatch):
    expected = measure_run(digits, suite, limit=20)
    data, pipeline = load_labelled(digits, "test")
    files = FileImages([Path(str(n)) for n in range(len(data))], lambda path: data.images[int(path.name)])
    kept = LabelledImages(files, data.labels, data.classes)
    monkeypatch.setattr("torchcaps.suites.api.load_labelled", lambda *_, **__: (kept, pipeline))
    assert measure_run(digits, suite, limit=20) == expected


def test_a_turn_of_nothing_changes_nothing():
    from torchcaps.data import AffineLimits

    images = load_dataset("synthetic_mnist", "test").images[:4]
    assert torch.equal(transform(images, AffineLimits(), "none"), images)


def test_pairs_of_the_overlap_suite_differ_in_class_and_add_up():
    data = load_dataset("synthetic_mnist", "test")
    images, labels = overlay_pairs(data, 0)
    assert (labels[:, 0] != labels[:, 1]).all()
    assert torch.equal(labels[:, 0], data.labels)
    assert (images >= data.images).all()


def test_images_of_a_pair_move_each_on_its_own_as_far_as_they_may():
    """A dot in the middle of each image, of a brightness that tells its class."""
    labels = torch.arange(200) % 2
    images = torch.zeros(200, 1, 15, 15, dtype=torch.uint8)
    images[:, 0, 7, 7] = torch.where(labels == 0, 40, 90).byte()
    together, _ = overlay_pairs(LabelledImages(images, labels, ("dark", "bright")), 3)
    moves = []
    for values in ((40, 130), (90, 130)):  # dots that meet add up
        is_dot = (together[:, 0] == values[0]) | (together[:, 0] == values[1])
        number, row, column = is_dot.nonzero().T
        assert torch.equal(number, torch.arange(200))
        moves.append(torch.stack([row, column], dim=1) - 7)
    for move in moves:
        for axis in (0, 1):
            assert move[:, axis].unique().tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert (moves[0] == moves[1]).all(1).double().mean() < 0.15  # one in 49 by chance


def recorded(monkeypatch, module):
    """The images of which accuracy is asked, one after the other."""
    asked = []

    def accuracy(material, images, labels=None):
        asked.append(images)
        return {"accuracy": 0.5}

    monkeypatch.setattr(module, "accuracy_on", accuracy)
    return asked


REACH, SIDE, COUNT = 12, 65, 150
AT = (torch.arange(SIDE) - SIDE // 2).double()


@pytest.fixture
def affine_maps(digits, monkeypatch):
    """The matrices (count, 2, 2) and moves (count, 2) of each condition, x before y.

    Three dots, each in a colour of its own, tell them: in the middle, to the right of it and below it.
    """
    places = [(0, 0), (REACH, 0), (0, REACH)]
    dots = [torch.exp(-((AT - x) ** 2 + (AT[:, None] - y) ** 2) / 8) for x, y in places]
    images = (255 * torch.stack(dots)).round().byte().expand(COUNT, -1, -1, -1)
    data, pipeline = load_labelled(digits, "test")
    shown = LabelledImages(images, torch.zeros(COUNT, dtype=torch.int64), data.classes)
    asked, found = recorded(monkeypatch, affine), {}
    conditions = affine.measure_affine(Material(digits, shown, pipeline, None, None))
    for each, changed in zip(conditions, asked, strict=True):
        mass = changed.double() / changed.double().sum((2, 3), keepdim=True)
        dot = torch.stack([(mass.sum(2) * AT).sum(2), (mass.sum(3) * AT).sum(2)], dim=2)
        found[each.group, each.condition] = (dot[:, 1:] - dot[:, :1]).mT / REACH, dot[:, 0]
    return found


def assert_fills(values, limit):
    """All within the limit, some nearly at either end of it."""
    assert values.abs().max() <= limit + 0.02
    assert values.max() > 0.9 * limit
    assert values.min() < -0.9 * limit


def assert_is(values, expected):
    assert_close(values, torch.tensor(expected).double().expand_as(values), atol=0.02, rtol=0)


def test_images_of_the_affine_suite_are_changed_as_far_as_it_tells(affine_maps):
    for (group, words), (matrix, move) in affine_maps.items():
        (a, b), (c, d) = ((row[:, 0], row[:, 1]) for row in matrix.unbind(1))
        limit = (
            float(words.strip("±°%")) / (100 if words.endswith("%") else 1) if group != "affNIST-style" else 0
        )
        if group == "as they are":
            assert_is(matrix, [[1.0, 0.0], [0.0, 1.0]])
        elif group == "rotation":
            assert_is(matrix @ matrix.mT, [[1.0, 0.0], [0.0, 1.0]])
            assert_fills(torch.atan2(c, a).rad2deg() / limit, 1.0)
        elif group == "scale":
            assert_is(torch.stack([b, c]), 0.0)
            assert_fills(a - 1, limit)
            assert_fills(d - 1, limit)
        elif group == "shear":
            assert_is(torch.stack([a, c, d], dim=1), [1.0, 0.0, 1.0])
            assert_fills(b, limit)
        elif group == "shift":
            assert_is(matrix, [[1.0, 0.0], [0.0, 1.0]])
            assert_fills(move[:, 0] / SIDE, limit)
            assert_fills(move[:, 1] / SIDE, limit)
        if group not in ("shift", "affNIST-style"):
            assert_is(move / REACH, 0.0)


def test_the_changes_of_affnist_come_all_at_once(affine_maps):
    matrix, move = affine_maps["affNIST-style", "all"]
    areas = torch.linalg.det(matrix)  # that of two factors in 0.8..1.2: turns and shears keep it
    assert 0.63 < areas.min() < 0.8
    assert 1.2 < areas.max() < 1.45
    assert_fills(move[:, 0] / SIDE, 0.1)
    assert_fills(move[:, 1] / SIDE, 0.1)


def test_images_of_the_corruption_suite_are_those_of_its_kinds_and_strengths(digits, monkeypatch):
    data, pipeline = load_labelled(digits, "test")
    asked = recorded(monkeypatch, corruption)
    found = corruption.measure_corruption(Material(digits, data, pipeline, None, None))
    changed = dict(zip(((each.group, each.condition) for each in found), asked, strict=True))
    assert torch.equal(changed.pop(("clean", "0")), data.images)
    assert set(changed) == {(kind, strength) for kind in CORRUPTIONS for strength in "12345"}
    for (kind, strength), images in changed.items():
        assert torch.equal(images, corrupt_images(data.images, kind, int(strength)))


def test_two_answers_are_compared_with_two_classes(digits, monkeypatch):
    """The first class is found, the second one comes third."""
    data, pipeline = load_labelled(digits, "test")
    pairs = iter([overlay_pairs(data, shift_by)[1] for shift_by in (0, 2, 4, 6)])

    def activations(material, images):
        first, second = next(pairs).T
        neither = torch.tensor(
            [min({0, 1, 2} - {int(a), int(b)}) for a, b in zip(first, second, strict=True)]
        )
        ranked = zip((first, neither, second), (0.9, 0.8, 0.7), strict=True)
        return sum(torch.nn.functional.one_hot(each, 10) * value for each, value in ranked)

    monkeypatch.setattr(overlap, "activations_of", activations)
    for each in overlap.measure_overlap(Material(digits, data, pipeline, None, None)):
        assert each.metrics == {"pair_accuracy": 0.0, "digit_accuracy": 0.5}


def test_conditions_of_the_affine_suite_are_those_it_tells(digits):
    found = list(by_condition(measure_run(digits, "affine", limit=10)))
    by_group = {group: [words for own, words in found if own == group] for group, _ in found}
    assert by_group == {
        "as they are": ["0"],
        "rotation": ["±10°", "±20°", "±30°", "±45°", "±60°"],
        "scale": ["±10%", "±20%", "±30%", "±40%"],
        "shear": ["±0.1", "±0.2", "±0.3", "±0.4"],
        "shift": ["±5%", "±10%", "±15%", "±20%"],
        "affNIST-style": ["all"],
    }


def test_partwhole_measures_trees_maps_and_poses(parts):
    found = by_condition(measure_run(parts, "partwhole", limit=60))
    assert [key for key in found if key[0] == "clutter"] == [
        ("clutter", strength) for strength in ("0", "0.25", "0.5", "0.75", "1")
    ]
    truth = found["ground truth", "as trained"]
    assert truth["saliency_on_object"] + truth["saliency_on_clutter"] <= 1
    for name in (
        "accuracy_with_even",
        "part_purity",
        "tree_precision",
        "even_tree_recall",
        "random_tree_recall",
    ):
        assert 0 <= truth[name] <= 1
    assert truth["tree_recall"] == 0  # one routed layer cannot show the objects of a scene
    assert truth["part_purity"] >= truth["part_purity_base"]
    assert truth["equivariance_error"] >= 0


@pytest.mark.parametrize("changes", [{"resize": 30, "center_crop": 24}, {"pad": 2, "resize": 20}])
def test_partwhole_refuses_runs_that_move_pixels(parts, changes):
    data = replace(parts.recipe.data, preprocess=Preprocess(**changes))
    moved = replace(parts, recipe=replace(parts.recipe, data=data))
    with pytest.raises(UserError, match="moves pixels"):
        draw_test_images(moved)
    assert len(draw_test_images(parts, 5)) == 5


def test_partwhole_is_drawn_with_the_clutter_that_is_asked_for(parts):
    assert len(draw_test_images(parts, 10_000)) == 60  # no more than the dataset has
    assert not draw_test_images(parts, 20, clutter=0.0).is_clutter.any()
    assert draw_test_images(parts, 20, clutter=1.0).is_clutter.any()


def test_partwhole_draws_the_test_images_of_the_run(parts, monkeypatch):
    data, pipeline = load_labelled(parts, "test")
    drawn = draw_test_images(parts)
    assert torch.equal(drawn.images, data.images)
    assert torch.equal(drawn.labels, data.labels)
    asked = recorded(monkeypatch, partwhole)
    monkeypatch.setattr(partwhole, "measure_truth", lambda *_: {})
    found = partwhole.measure_partwhole(Material(parts, data, pipeline, None, 10))
    *strengths, own = asked
    assert torch.equal(own, data.images[:10])
    for each, images in zip(found, strengths, strict=False):
        assert torch.equal(images, draw_test_images(parts, 10, float(each.condition)).images)
    assert not torch.equal(strengths[0], strengths[-1])


@pytest.mark.parametrize(
    ("suite", "words"), [("partwhole", "needs a run on"), ("viewpoint", "no novel views")]
)
def test_a_suite_that_does_not_fit_the_data_says_so(digits, suite, words):
    with pytest.raises(UserError, match=words):
        measure_run(digits, suite)


def test_viewpoint_tells_familiar_from_novel_views(photographs):
    run, folder = photographs
    found = by_condition(measure_run(run, "viewpoint", data_dir=folder))
    assert list(found) == [("views", "familiar"), ("views", "novel")]
    familiar, novel = (each["accuracy"] for each in found.values())
    whole = evaluate_run(run, data_dir=folder)["accuracy"]
    assert (2 * familiar + novel) / 3 == pytest.approx(whole)  # two of three views are familiar


def test_viewpoint_looks_at_as_many_images_as_it_is_told(photographs, monkeypatch):
    run, folder = photographs
    asked = recorded(monkeypatch, viewpoint)
    measure_run(run, "viewpoint", data_dir=folder, limit=3)
    assert [len(images) for images in asked] == [3, 3]


def test_a_table_has_a_row_for_each_metric_and_a_dash_where_a_run_has_none():
    turned = Measurement("turn", "15°", {"accuracy": 0.5, "equivariance_error": 0.25})
    first, second = [turned, Measurement("clean", "0", {"accuracy": 0.875})], [turned]
    assert table_of({"a": first, "b": second}) == [
        {"condition": "turn 15°", "metric": "accuracy", "a": "50.00%", "b": "50.00%"},
        {"condition": "turn 15°", "metric": "equivariance error", "a": "0.250", "b": "0.250"},
        {"condition": "clean 0", "metric": "accuracy", "a": "87.50%", "b": "-"},
    ]


@pytest.mark.parametrize(
    ("name", "is_split"),
    [
        ("eth80:axis=azimuth", True),
        ("eth80:fold=2,axis=elevation", True),
        ("smallnorb_views", True),
        ("eth80", False),
        ("eth80:fold=1", False),
        ("eth80:axis=instance", False),
        ("mnist", False),
    ],
)
def test_datasets_with_novel_views_are_known(name, is_split):
    assert has_novel_views(name) is is_split


@pytest.mark.parametrize("suite", ["affine", "corruption", "overlap", "turns"])
def test_suites_run_on_a_pretrained_network(suite):
    found = measure_run(load_pretrained("dr_capsnet_small.mnist5k-types"), suite, limit=10)
    assert all(0 <= value <= 1 for each in found for value in each.metrics.values())


def test_partwhole_runs_on_a_pretrained_network():
    run = load_pretrained("efficient_capsnet_mnist.partwhole")
    found = by_condition(measure_run(run, "partwhole", limit=8))
    assert found["clutter", "0"]["accuracy"] > 0.8
    assert "tree_precision" in found["ground truth", "as trained"]


def test_one_setting_of_a_name_is_replaced():
    assert views_of("eth80:axis=azimuth,views=all")["novel"] == "eth80:axis=azimuth,views=novel"
    assert views_of("smallnorb_views")["novel"] == "smallnorb_views:views=novel"


def test_seven_suites_are_known():
    names = ["affine", "corruption", "overlap", "partwhole", "photographs", "turns", "viewpoint"]
    assert SUITES.names() == names


@pytest.mark.parametrize("known", [0, 5], ids=["none", "a quarter"])
def test_a_network_that_knows_upright_images_alone_says_how_to_turn_the_others(digits, monkeypatch, known):
    """Of twenty images the first `known` are known in every turn."""

    def activations(material, images):
        """Sure of images whose first pixel is bright, and less sure of another class of others."""
        is_upright = (images[:, 0, 0, 0] == 255) | (torch.arange(20) < known)
        classes = (material.data.labels + ~is_upright) % 10
        return torch.nn.functional.one_hot(classes, 10) * torch.where(is_upright, 0.9, 0.6).unsqueeze(1)

    data, pipeline = load_labelled(digits, "test")
    images = data.images[:20].clone()
    images[:, :, [0, 0, -1, -1], [0, -1, 0, -1]] = torch.tensor([255, 0, 0, 0], dtype=torch.uint8)
    marked = LabelledImages(images, data.labels[:20], data.classes)
    monkeypatch.setattr(turns, "activations_of", activations)
    found = turns.measure_turns(Material(digits, marked, pipeline, None, None))
    upright, *turned = (each.metrics for each in found)
    assert upright == {"accuracy": 1.0, "hinted": 0.0}
    share = known / 20
    for each in turned:
        assert each == {
            "accuracy": share,
            "hinted": 1 - share,
            "hinted_back": 1 - share,
            "hinted_errors": 1.0,  # of those that are misread
        }


def test_the_command_compares_runs_in_one_table_and_figure(digits, tmp_path):
    call = ["eval", str(digits.folder), str(digits.folder), "--suite", "overlap", "--limit", "30"]
    figure = tmp_path / "overlap.png"
    shown = CliRunner().invoke(app, [*call[:2], *call[3:], "--figure", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert "accuracy of both" in shown.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    told = CliRunner().invoke(app, [*call, "--json"])
    content = json.loads(told.stdout)
    assert content["suite"] == "overlap"
    assert content["command"].endswith(" --suite overlap --limit 30 --json")
    assert content["device"].startswith("cpu, ")
    assert {"commit", "versions"} <= set(content)
    assert len(next(iter(content["runs"].values()))) == 4


@pytest.fixture
def drawn_charts(monkeypatch):
    """What would be drawn, figure by figure."""
    drawn = []

    def draw(charts, **options):
        drawn.append(charts)
        return draw_dots(charts, **options)

    monkeypatch.setattr("torchcaps.suites.compare.draw_dots", draw)
    return drawn


def test_more_runs_than_colours_are_drawn_side_by_side(tmp_path, drawn_charts):
    rows = [Measurement("turn", words, {"accuracy": 0.5}) for words in ("little", "more", "much")]
    clean = Measurement("clean", "0", {"accuracy": 0.9})
    draw_suite({f"run {number}": [clean, *rows] for number in range(9)}, tmp_path / "many.png")
    charts = drawn_charts[0]
    assert list(charts) == ["clean, 0", "turn, little and much"]
    assert list(charts["clean, 0"]) == ["first condition"]
    assert [len(runs) for runs in charts["turn, little and much"].values()] == [9, 9]


def test_a_group_of_one_condition_is_drawn_by_its_metrics(tmp_path, drawn_charts):
    truth = {"accuracy": 0.5, "tree_precision": 0.25, "equivariance_error": 0.1}
    rows = [Measurement("clutter", strength, {"accuracy": 0.5}) for strength in ("0", "1")]
    draw_suite({"mine": [*rows, Measurement("truth", "as trained", truth)]}, tmp_path / "truth.png")
    assert list(drawn_charts[0]) == ["clutter: accuracy", "truth"]
    shown = {title: found.value for title, found in drawn_charts[0]["truth"]["mine"].items()}
    assert shown == {"accuracy": 50.0, "precision of carved edges": 25.0}  # all in percent


def test_a_group_that_lacks_the_first_metric_is_drawn_by_its_own(tmp_path, drawn_charts):
    rows = [Measurement("page", words, {"read_right": 0.5, "refused": 0.25}) for words in ("a", "b")]
    empty = [Measurement("no digit", words, {"refused": 0.75}) for words in ("a", "b")]
    draw_suite({"mine": [*rows, *empty]}, tmp_path / "photographs.png")
    assert list(drawn_charts[0]) == ["page", "no digit: refused"]
    assert drawn_charts[0]["no digit: refused"]["mine"]["a"].value == 75.0


def test_runs_whose_names_cannot_be_drawn_are_numbered(tmp_path, drawn_charts):
    rows = [Measurement("turn", "little", {"accuracy": 0.5})]
    draw_suite({"\u732b 1": rows, "\u72ac 1": rows, "mine": rows}, tmp_path / "odd.png")
    assert list(drawn_charts[0]["turn"]) == ["run 0", "run 1", "mine"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--suite", "affin"], "affine"),
        (["--suite", "affine", "--health"], "leave --data"),
        (["--limit", "3"], "belong to a --suite"),
    ],
)
def test_options_that_do_not_fit_are_refused(digits, options, words):
    with pytest.raises(UserError, match=words):
        CliRunner().invoke(app, ["eval", str(digits.folder), *options], catch_exceptions=False)


def test_partwhole_compares_the_trees_of_a_network_whose_capsules_read_the_whole_map(levels):
    truth = by_condition(measure_run(levels, "partwhole", limit=12))["ground truth", "as trained"]
    for name in ("tree_precision", "even_tree_precision", "random_tree_recall", "part_purity"):
        assert 0 <= truth[name] <= 1
    assert truth["saliency_on_object"] + truth["saliency_on_clutter"] <= 1
    assert "contribution_on_object" not in truth  # votes add up to a class through one layer alone
