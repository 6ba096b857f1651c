import json
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.made_rows import a_result

from torchcaps.core import UserError
from torchcaps.core.metric import metric_of
from torchcaps.experiments import EXPERIMENTS, LABELS
from torchcaps.experiments.plan import slug_of
from torchcaps.experiments.records import BUDGETS, Protocol, load_rows
from torchcaps.experiments.results import summarise, write_results
from torchcaps.experiments.results.documents import refresh, renew
from torchcaps.experiments.results.gather import rows_of_runs
from torchcaps.experiments.results.overview import render_overview
from torchcaps.experiments.results.page import render_page, rows_in
from torchcaps.experiments.results.tables import render_table
from torchcaps.models import MODELS, list_models

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = {"models.md"}  # builds all models
SHORT = [Protocol(note="short")]


def row(setting, *accuracies, metric="test_accuracy", thesis=None):
    results = [a_result(seed, **{metric: value}) for seed, value in enumerate(accuracies)]
    return summarise(results, setting=setting, metric=metric, protocols=SHORT, thesis=thesis)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] if path.name in LONG else []) for path in DOCUMENTS],
    ids=lambda path: path.name,
)
def test_tables_in_documents_are_those_of_the_result_files(path):
    assert refresh(path.read_text(), ROOT) == path.read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*.json")), ids=lambda path: path.stem)
def test_rows_are_the_means_of_their_runs(path):
    assert json.loads(path.read_text())["label"] == path.stem
    for row in load_rows(path.parent, path.stem):
        values = [metric_of(row.metric).scale * run.value for run in row.runs]
        assert row.ours == pytest.approx(sum(values) / len(values), abs=1e-3)


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_rows_are_called_quick_where_a_full_run_is_longer(label):
    experiment = EXPERIMENTS[label]
    settings = {setting.name: setting for setting in experiment.settings}
    for row in rows_in(ROOT / "results")(label):
        if row.budget == "quick" and row.setting in settings:
            assert experiment.run_of(settings[row.setting], "quick", seed=42).budget == "quick"


@pytest.mark.slow
def test_committed_rows_are_those_that_the_packed_runs_give(tmp_path):
    with tarfile.open(ROOT / "results" / "runs.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    packed = [EXPERIMENTS[label] for label in EXPERIMENTS.names() if (tmp_path / slug_of(label)).is_dir()]
    assert sum(compare_rows(experiment, tmp_path) for experiment in packed) > 900


def compare_rows(experiment, out):
    """How many rows of the committed results were made by the runs in a folder; all are equal to theirs."""
    committed = {(row.setting, row.metric): row for row in load_rows(ROOT / "results", experiment.slug)}
    compared = 0
    for budget in BUDGETS:
        for row in rows_of_runs(experiment, out, budget=budget):
            other = committed.get((row.setting, row.metric))
            if other is not None and made_by(other) == made_by(row):
                assert summary(row) == summary(other)
                compared += 1
    return compared


def made_by(row):
    return [(run.facts.seed, run.facts.commit, run.facts.seconds) for run in row.runs]


def summary(row):
    """All that a row says, in the form in which it is written."""
    content = json.loads(json.dumps(row.as_json()))
    return {**content, "protocols": row.protocol}


def test_pages_are_those_of_the_result_files():
    rows_of = rows_in(ROOT / "results")
    built = {EXPERIMENTS[label].slug: EXPERIMENTS[label] for label in EXPERIMENTS.names()}
    for path in sorted((ROOT / "results").glob("*-*.md")):
        assert render_page(built[path.stem], rows_of) == path.read_text()
    assert render_overview(rows_of) == (ROOT / "results" / "claims.md").read_text()


def test_claims_stand_in_the_order_of_the_chapters_of_the_thesis():
    page = (ROOT / "results" / "claims.md").read_text()
    chapters = re.findall("^## (.*)$", page, re.MULTILINE)
    of_thesis = [chapter for chapter in dict.fromkeys(LABELS.values()) if chapter in chapters]
    assert chapters[: len(of_thesis)] == of_thesis


def test_pages_and_documents_are_renewed_from_the_result_files(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    shutil.copy(ROOT / "results" / "beyond-shrunk.json", results)
    (results / "beyond-shrunk.md").write_text("of yesterday")
    (tmp_path / "README.md").write_text("<!-- results: beyond-shrunk -->\nof yesterday\n<!-- end -->\n")
    renew(tmp_path)
    table = render_table(load_rows(results, "beyond-shrunk"))
    page = (results / "beyond-shrunk.md").read_text()
    assert page == (ROOT / "results" / "beyond-shrunk.md").read_text()
    assert table in page
    assert (tmp_path / "README.md").read_text() == f"<!-- results: beyond-shrunk -->\n{table}<!-- end -->\n"
    assert {path.name for path in results.glob("*.md")} == {"beyond-shrunk.md", "claims.md"}


def test_mean_and_spread_are_over_seeds():
    found = row("s", 0.9, 0.92, thesis=95.0)
    assert found.ours == pytest.approx(91)
    assert found.spread == pytest.approx(2**0.5, abs=1e-3)
    assert "| s | test accuracy, % | 95.00 | 91.00 ± 1.41 | 2 | short |" in render_table([found])
    several = [replace(found, metric=name) for name in ("test_accuracy", "entropy", "keys")]
    table = render_table(several)
    assert "| setting | test accuracy, % | entropy, bits | parse trees | seeds | protocol |" in table
    assert "| s | 91.00 ± 1.41 (thesis 95.00) | 91.00 ± 1.41 (thesis 95.00) | 91 ± 1 (thesis 95) |" in table
    twice = [a_result(1, test_accuracy=0.9)] * 2
    with pytest.raises(UserError, match="a seed occurs twice"):
        summarise(twice, setting="s", metric="test_accuracy", protocols=SHORT)
    with pytest.raises(UserError, match="no runs"):
        summarise([], setting="s", metric="test_accuracy", protocols=SHORT)


def test_the_unit_of_a_metric_decides_how_a_share_is_shown():
    assert row("s", 0.25, metric="sparsity").ours == 25
    assert row("s", 0.25, metric="entropy").ours == 0.25


def test_new_rows_replace_old_ones_and_keep_the_others(tmp_path):
    write_results(tmp_path, "tab-x", [row("a", 0.5), row("b", 0.6)], "command")
    write_results(tmp_path, "tab-x", [row("a", 0.7)], "command")
    assert {found.setting: found.ours for found in load_rows(tmp_path, "tab-x")} == {"a": 70, "b": 60}


def test_rows_are_in_the_order_of_the_plan_whenever_they_came(tmp_path):
    order = [(name, "test_accuracy") for name in "abc"]
    for name in "cxb":
        write_results(tmp_path, "tab-x", [row(name, 0.5)], "command", order=order)
    assert [found.setting for found in load_rows(tmp_path, "tab-x")] == ["b", "c", "x"]


def test_every_paper_is_in_the_bibliography():
    keys = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text()))
    assert {MODELS[name].paper for name in list_models()} <= keys
