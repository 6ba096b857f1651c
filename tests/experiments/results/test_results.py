import json
import re
from pathlib import Path

import pytest

from torchcaps.core import UserError
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.results import render_overview, render_page, render_table, summarise, write_results
from torchcaps.experiments.results.documents import refresh
from torchcaps.models import MODELS, list_models

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(seed, accuracy):
    return {
        "metrics": {"test_accuracy": accuracy},
        "seed": seed,
        "commit": "abc",
        "versions": {},
        "device": "cpu",
        "seconds": 1.0,
        "precision": "32",
        "parameters": 10,
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_tables_in_documents_are_those_of_the_result_files(path):
    assert refresh(path.read_text(), ROOT) == path.read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*.json")), ids=lambda path: path.stem)
def test_result_rows_have_their_form(path):
    content = json.loads(path.read_text())
    assert content["label"] == path.stem
    for row in content["rows"]:
        assert set(row) - {"curve"} == {
            *("setting", "metric", "thesis", "ours", "spread", "seeds", "protocol", "runs")
        }
        assert row["seeds"] == len(row["runs"])
        if row["runs"] and row["metric"] == "test_accuracy":
            values = [100 * made[row["metric"]] for made in row["runs"]]
            assert row["ours"] == pytest.approx(sum(values) / len(values), abs=1e-3)


def test_pages_are_those_of_the_result_files():
    built = {EXPERIMENTS[label].slug: EXPERIMENTS[label] for label in EXPERIMENTS.names()}
    for path in sorted((ROOT / "results").glob("*-*.md")):
        assert render_page(built[path.stem], ROOT / "results") == path.read_text()
    assert render_overview(ROOT / "results") == (ROOT / "results" / "claims.md").read_text()


def test_the_readme_shows_what_the_demo_gave():
    row = json.loads((ROOT / "results" / "demo-mnist5k.json").read_text())["rows"][0]
    assert f"held-out digits: {row['ours']:.2f}%" in (ROOT / "README.md").read_text()


def test_mean_and_spread_are_over_seeds():
    row = summarise(
        [run(1, 0.9), run(2, 0.92)], setting="s", metric="test_accuracy", thesis=95.0, protocol="short"
    )
    assert row["ours"] == pytest.approx(91)
    assert row["spread"] == pytest.approx(2**0.5, abs=1e-3)
    assert "| s | test_accuracy | 95.00 | 91.00 ± 1.41 | 2 | short |" in render_table([row])
    several = [{**row, "metric": name} for name in ("test_accuracy", "entropy", "keys")]
    assert "| s | 91.00 ± 1.41 (thesis 95.00) | 91.00 ± 1.41 (thesis 95.00) | 91 ± 1 (thesis 95) |" in (
        render_table(several)
    )
    with pytest.raises(UserError, match="a seed occurs twice"):
        summarise([run(1, 0.9), run(1, 0.9)], setting="s", metric="test_accuracy", thesis=None, protocol="")
    with pytest.raises(UserError, match="no runs"):
        summarise([], setting="s", metric="test_accuracy", thesis=None, protocol="")


def test_new_rows_replace_old_ones_and_keep_the_others(tmp_path):
    rows = [
        summarise([run(1, value)], setting=name, metric="test_accuracy", thesis=None, protocol="p")
        for name, value in (("a", 0.5), ("b", 0.6))
    ]
    write_results(tmp_path, "tab-x", rows, "command")
    better = summarise([run(1, 0.7)], setting="a", metric="test_accuracy", thesis=None, protocol="p")
    write_results(tmp_path, "tab-x", [better], "command")
    kept = {row["setting"]: row["ours"] for row in json.loads((tmp_path / "tab-x.json").read_text())["rows"]}
    assert kept == {"a": 70, "b": 60}


def test_rows_are_in_the_order_of_the_plan_whenever_they_came(tmp_path):
    order = [(name, "test_accuracy") for name in "abc"]
    for name in "cxb":
        row = summarise([run(1, 0.5)], setting=name, metric="test_accuracy", thesis=None, protocol="p")
        write_results(tmp_path, "tab-x", [row], "command", order=order)
    rows = json.loads((tmp_path / "tab-x.json").read_text())["rows"]
    assert [row["setting"] for row in rows] == ["b", "c", "x"]


def test_every_paper_is_in_the_bibliography():
    keys = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text()))
    assert {MODELS[name].paper for name in list_models()} <= keys
