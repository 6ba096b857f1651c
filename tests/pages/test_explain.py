import json
import math
import os
import re
from dataclasses import replace
from importlib import import_module
from weakref import ref

import numpy as np
import pytest
import torch
from parse.test_explain import make_run
from PIL import Image

from torchcaps import create_model, explain
from torchcaps.core import MissingDataError, UserError
from torchcaps.pages import explain_images
from torchcaps.pages.image_page import build_page, say_length
from torchcaps.parse import Contributions, Explainer, Usual, rank_in_words

FINDING = "couplings are uniform: in routed layer 0"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    rows = explain_images(
        Explainer(make_run(folder, primary_pose=2, class_pose=1), reference=20),
        ["test:3", "test:3"],
        folder / "out",
    )
    return folder / "out", rows


def test_each_image_gets_page_drawings_and_json(written):
    out, rows = written
    drawings = {f"{name}.{kind}" for name in ("tree", "saliency", "perturbations") for kind in ("png", "svg")}
    for stem, row in zip(("test-3", "test-3~2"), rows, strict=True):
        names = {path.rpartition("/")[2] for path in row["files"]}
        assert {f"{stem}.json", f"{stem}.html"} | {f"{stem}-{name}" for name in drawings} <= names
        assert all((out / name).stat().st_size for name in names)
        data = json.loads((out / f"{stem}.json").read_text())
        assert data == {key: value for key, value in row.items() if key != "files"} | {"tree": data["tree"]}


@pytest.mark.parametrize("name", ["test-3-tree.png", "test-3.json", "test-3.html", "index.html"])
def test_a_file_of_the_user_is_kept(tmp_path, name):
    explainer = Explainer(make_run(tmp_path, primary_pose=2, class_pose=1), reference=20)
    (tmp_path / name).write_text('{"mine": 1}')
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match=rf"{name} was not written by explain and is kept"):
        explain_images(explainer, ["test:3", "test:4"], tmp_path)
    assert (tmp_path / name).read_text() == '{"mine": 1}'
    assert sorted(tmp_path.iterdir()) == before


def test_all_files_that_cannot_be_read_are_named_before_any_work(tmp_path):
    explainer = Explainer(make_run(tmp_path / "run", primary_pose=2, class_pose=1), reference=20)
    (tmp_path / "a.png").write_text("hello")
    names = [str(tmp_path / "a.png"), "test:3", str(tmp_path / "b.png")]
    with pytest.raises(UserError, match=r"(?s)2 files cannot be used.*a\.png cannot be read.*no image at"):
        explain_images(explainer, names, tmp_path / "out")
    with pytest.raises(MissingDataError, match="no image at"):
        explain_images(explainer, names[1:], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_name_in_no_encoding_is_explained_and_linked(tmp_path):
    explainer = Explainer(make_run(tmp_path / "run", primary_pose=2, class_pose=1), reference=20)
    name = os.fsdecode(b"caf\xe9.png")
    Image.new("L", (28, 28), 90).save(tmp_path / name)
    explain_images(explainer, [str(tmp_path / name), "test:3"], tmp_path / "out")
    assert "caf?.png" in (tmp_path / "out" / os.fsdecode(b"caf\xe9.html")).read_text()
    assert 'href="caf%E9.html"' in (tmp_path / "out" / "index.html").read_text()


def test_votes_and_bias_are_said_to_make_the_length_as_they_do():
    found = Contributions(torch.tensor([[0.5, 0.2, -0.1]]), torch.tensor([0.4]))
    votes = "Votes for 3 add 70% of its length, votes against it take away 10%"
    assert say_length(found, "3") == f"{votes}, and its bias adds 40%."
    unbiased = Contributions(torch.tensor([[0.6, 0.6, -0.2]]), torch.zeros(1))
    assert say_length(unbiased, "3") == "Votes for 3 add 120% of its length, votes against it take away 20%."
    empty = Contributions(torch.zeros(1, 3), torch.tensor([2.0]))  # all couplings were rounded to zero
    assert say_length(empty, "3").startswith("Votes for 3 add 0% of its length")


@pytest.mark.parametrize(("bits", "split"), [(40.0, "validation"), (math.inf, "training")])
def test_a_tree_that_cannot_be_compared_names_the_images_that_lack(tmp_path, bits, split):
    explainer = Explainer(make_run(tmp_path), reference=10)
    found = explainer.explain(explainer.read("test:0"))
    alone = replace(found, usual=Usual(surprise=bits, key_surprise=bits, share=None, others=np.zeros(0)))
    page = build_page(alone, explainer.info.classes, {}).to_html()
    assert f"Not known: no {split} image that was looked at was read as" in page


def test_less_than_a_bit_of_surprise_is_not_rounded_to_a_whole_one(tmp_path):
    explainer = Explainer(make_run(tmp_path), reference=10)
    found = explainer.explain(explainer.read("test:0"))
    usual = Usual(surprise=0.57, key_surprise=0.2, share=0.0, others=np.zeros(20))
    page = build_page(replace(found, usual=usual), explainer.info.classes, {}).to_html()
    assert "it is 0.6 bits with each child judged alone" in page


@pytest.mark.parametrize(
    ("model", "subject"),
    [("gamma_capsnet_tiny_test", "This tree is"), ("dr_capsnet_tiny_test", "Its couplings are")],
)
def test_couplings_are_compared_where_there_is_no_tree(tmp_path, model, subject):
    explainer = Explainer(make_run(tmp_path, model), reference=10)
    found = explainer.explain(explainer.read("test:0"))
    usual = Usual(surprise=1.0, key_surprise=1.0, share=0.5, others=np.zeros(20))
    page = build_page(replace(found, usual=usual), explainer.info.classes, {}).to_html()
    assert ("There is none" in page) == (subject != "This tree is")
    assert f"{subject} stranger than 50% of 20 validation images" in page


def test_the_page_says_what_was_done_to_a_photograph(tmp_path):
    explainer = Explainer(make_run(tmp_path), reference=10)
    found = explainer.explain(explainer.read("test:0"))
    assert "done to the photograph" not in build_page(found, explainer.info.classes, {}).to_html()
    turned = replace(found, source=replace(found.source, preparation="inverted"))
    assert turned.as_json(explainer.info.classes)["preparation"] == "inverted"
    page = build_page(turned, explainer.info.classes, {}).to_html()
    assert "What was done to the photograph: inverted." in page


@pytest.mark.slow
def test_what_explain_wrote_is_written_anew(written, tmp_path):
    explainer = Explainer(make_run(tmp_path, primary_pose=2, class_pose=1), reference=20)
    again = explain_images(explainer, ["test:3", "test:3"], written[0])
    assert [row["files"] for row in again] == [row["files"] for row in written[1]]


def test_the_page_shows_everything(written):
    page, rows = (written[0] / "test-3.html").read_text(), written[1]
    for heading in ("The parse tree", "Where it looked", "How typical it is", "What its numbers change"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<img") >= 2
    assert "Contribution marks where votes make the capsule" in page
    assert f"<dt>votes against</dt><dd>{rows[0]['contribution_against']:.0%}</dd>" in page
    second = rows[0]["runner_up"]
    assert f"<dt>runner-up</dt><dd>{second}, {rows[0]['activations'][second]:.3f}</dd>" in page
    assert 'class="tree"' in page
    tree = rows[0]["tree"]
    assert f"<dd>{tree['capsules_in_tree'][0]} of {tree['layer_sizes'][0]}</dd>" in page
    usual = rows[0]["typicality"]
    assert f">{rank_in_words(usual['share_less_surprising'], usual['compared_with'])} images<" in page


@pytest.mark.slow
@pytest.mark.compile  # the run-time type checks would answer first
@pytest.mark.parametrize("image", [None, np.zeros((1, 20, 20), np.float32)])
def test_what_is_no_image_is_named(image):
    with pytest.raises(UserError, match=f"is explained, got a {type(image).__name__}"):
        explain(create_model("dr_capsnet_tiny_test"), image)


def test_what_a_network_cannot_show_is_said(tmp_path):
    explainer = Explainer(make_run(tmp_path, "gamma_capsnet_tiny_test", decoder="none"), reference=10)
    (row,) = explain_images(explainer, ["test:0"], tmp_path / "out")
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "What its numbers change" not in page  # it has no decoder
    assert ("no coupling to" in page) == (not row["tree"]["edges"])
    assert not any("perturbations" in path for path in row["files"])


@pytest.mark.slow
def test_capsules_without_a_place_have_no_map(tmp_path):
    explainer = Explainer(make_run(tmp_path, "parse_capsnet_tiny_test"), reference=10)
    (row,) = explain_images(explainer, ["test:0"], tmp_path / "out")
    assert "each capsule of this network sees the whole" in (tmp_path / "out" / "test-0.html").read_text()
    assert not any("saliency" in path for path in row["files"])


@pytest.mark.slow
def test_the_page_repeats_what_the_health_monitor_found(tmp_path):
    run = make_run(tmp_path)
    rows = [{"epoch": 0, "findings": ["parents are dead: all"]}, {"epoch": 1, "findings": [FINDING]}]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    explain_images(Explainer(run, reference=10), ["test:0"], tmp_path / "out")
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "<td>couplings are uniform</td><td>in routed layer 0</td>" in page
    assert "parents are dead" not in page


@pytest.mark.parametrize(
    "family", ["dr_capsnet", pytest.param("gamma_capsnet", marks=pytest.mark.slow), "parse_capsnet"]
)
def test_sections_are_short(tmp_path, family, written):
    if family == "dr_capsnet":
        page = written[0] / "test-3.html"
    else:
        run, page = make_run(tmp_path, f"{family}_tiny_test"), tmp_path / "test-0.html"
        explain_images(Explainer(run, reference=10), ["test:0"], tmp_path)
    sections = page.read_text().split("<section>")[1:]
    assert len(sections) == 4
    for section in sections:
        words = " ".join(re.findall(r"</h2>((?:<p>[^<]*</p>)*)", section))
        assert len(re.sub("<[^>]*>", " ", words).split()) < 60


@pytest.mark.slow
def test_without_contributions_the_page_says_why(tmp_path):
    explainer = Explainer(make_run(tmp_path, routing="em"), reference=10)
    (row,) = explain_images(explainer, ["test:0"], tmp_path / "out")
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "Saliency marks where active capsules" in page
    assert "There are no contributions: classes are routed by EMRouting" in page
    assert "Contribution:" not in page
    assert any("saliency" in path for path in row["files"])


@pytest.mark.slow
def test_an_empty_map_is_no_evidence(tmp_path):
    run = make_run(tmp_path)
    explain_images(Explainer(run, levels=2, reference=10), ["test:0"], tmp_path / "out")  # 0.1 becomes 0
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "The map is empty" in page
    assert "no place does" in page
    assert "0.00 times" not in page
    assert "-0%" not in page


def test_nothing_is_written_of_an_image_that_cannot_be_drawn(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise UserError("no pencil")

    monkeypatch.setattr(import_module("torchcaps.pages.image_page"), "draw_perturbations", fail)
    with pytest.raises(UserError, match="no pencil"):
        explain_images(Explainer(make_run(tmp_path), reference=10), ["test:0"], tmp_path / "out")
    assert not list(tmp_path.rglob("test-0*"))


def test_progress_is_shown_while_images_are_still_read(tmp_path):
    explainer, told = Explainer(make_run(tmp_path), reference=10), []
    with pytest.raises(MissingDataError):
        explain_images(explainer, ["nothing.png"], tmp_path / "out", lambda *counts: told.append(counts))
    assert told == [(0, 1)]


def test_several_images_get_an_index(written):
    out, rows = written
    page = (out / "index.html").read_text()
    assert page.count("<tr><td>") == len(rows)
    assert 'href="test-3~2.html"' in page
    assert (out / "overview.png").stat().st_size
    assert "As on the page of each image, side by side." in page


def test_what_was_found_of_an_image_is_let_go_once_it_is_written(tmp_path, monkeypatch):
    explainer = Explainer(make_run(tmp_path), reference=10)
    explain, found, alive = explainer.explain, [], []

    def watched(source):
        alive.append(sum(each() is not None for each in found))
        explanation = explain(source)
        found.append(ref(explanation))
        return explanation

    monkeypatch.setattr(explainer, "explain", watched)
    files = import_module("torchcaps.pages.image_files")
    monkeypatch.setattr(files, "_MOST_COLUMNS", 1)
    monkeypatch.setattr(files, "draw_all", lambda *_: {})
    monkeypatch.setattr(files, "draw_saliency", lambda *_: None)
    explain_images(explainer, [f"test:{number}" for number in range(4)], tmp_path / "out")
    assert alive == [0, 1, 2, 2]  # that of the overview, and the last one


def test_the_overview_says_how_many_of_the_images_it_shows(tmp_path):
    explainer = Explainer(make_run(tmp_path), reference=10)
    explain_images(explainer, [f"test:{number}" for number in range(9)], tmp_path / "out")
    assert "The first 8 images, side by side." in (tmp_path / "out" / "index.html").read_text()
