import json

import pytest
from parse.test_explain import make_run

from torchcaps.experiments.explain import explain_images
from torchcaps.parse import Explainer


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


def test_the_page_shows_everything(written):
    page, rows = (written[0] / "test-3.html").read_text(), written[1]
    for heading in ("The parse tree", "Where it looked", "How typical it is", "What its dimensions mean"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<img") >= 2
    assert "times the contribution of the mean place" in page
    assert f"speak against it, by {rows[0]['contribution_against']:.0%} of that length" in page
    assert 'id="tree"' in page
    usual = rows[0]["typicality"]
    assert f"{usual['share_no_more_surprising']:.0%} of {usual['compared_with']}" in page


def test_what_a_network_cannot_show_is_said(tmp_path):
    explainer = Explainer(make_run(tmp_path, "gamma_capsnet_tiny_test", decoder="none"), reference=10)
    (row,) = explain_images(explainer, ["test:0"], tmp_path / "out")
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "trained without a decoder" in page
    assert ("no coupling to" in page) == (not row["tree"]["edges"])
    assert "have no place on the image" in page
    assert not any("perturbations" in path or "saliency" in path for path in row["files"])


def test_without_contributions_the_page_speaks_of_the_thesis_s_map_alone(tmp_path):
    explainer = Explainer(make_run(tmp_path, routing="em"), reference=10)
    (row,) = explain_images(explainer, ["test:0"], tmp_path / "out")
    page = (tmp_path / "out" / "test-0.html").read_text()
    assert "Saliency, as in the thesis" in page
    assert "ontribution" not in page
    assert any("saliency" in path for path in row["files"])


def test_several_images_get_an_index(written):
    out, rows = written
    page = (out / "index.html").read_text()
    assert page.count("<tr><td>") == len(rows)
    assert 'href="test-3~2.html"' in page
    assert (out / "overview.png").stat().st_size
