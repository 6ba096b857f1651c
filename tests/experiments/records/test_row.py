import json
from pathlib import Path

import pytest
from experiments.made_rows import a_row, a_run

from torchcaps.core import UserError
from torchcaps.core.metric import metric_of
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.records import (
    MeanCurve,
    Protocol,
    Row,
    by_setting,
    load_rows,
    metric_heading,
    metric_words,
)

RESULTS = Path(__file__).parents[3] / "results"


def test_a_row_comes_back_from_json():
    row = a_row(
        "s",
        "test_accuracy",
        91.5,
        network="net",
        variant="way",
        thesis=90.0,
        spread=0.5,
        protocols=(Protocol(budget="quick", epochs=3, iterations=(1, 5), patience=2), Protocol(note="n")),
        runs=(a_run(0.91, concurrency=4, epochs=2, epochs_allowed=3), a_run(0.92, seed=43)),
        curve=MeanCurve(at=(1, 2), mean=(1.0, 2.0), spread=(None, 0.5), seeds=(1, 2)),
    )
    content = json.loads(json.dumps(row.as_json()))
    back = Row.from_json(content)
    assert json.loads(json.dumps(back.as_json())) == content
    assert back.protocols == row.protocols
    assert back.curve == row.curve
    assert [run.facts for run in back.runs] == [run.facts for run in row.runs]
    assert (back.seeds, back.budget, back.runs[1].facts.concurrency) == (2, "quick", None)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_rows_are_read_and_written_without_a_change(path):
    rows = load_rows(RESULTS, path.stem)
    written = json.loads(json.dumps([row.as_json() for row in rows]))
    assert written == json.loads(path.read_text())["rows"]


def test_a_damaged_row_is_named():
    content = a_row("s", "entropy", 1.0).as_json()
    content["protocols"][0]["epoch"] = 3
    with pytest.raises(UserError, match="row s, entropy"):
        Row.from_json(content)


@pytest.mark.parametrize("content", [None, [], {"rows": None}, {"rows": [None]}, {"rows": ["row"]}])
def test_a_file_that_holds_no_rows_is_named(tmp_path, content):
    (tmp_path / "tab-x.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"tab-x\.json is damaged .*; restore it"):
        load_rows(tmp_path, "tab-x")


def test_a_file_of_an_older_version_says_what_to_do(tmp_path):
    row = {"setting": "s", "metric": "entropy", "ours": 1.0, "protocol": "quick budget", "runs": []}
    (tmp_path / "tab-x.json").write_text(json.dumps({"rows": [row]}))
    with pytest.raises(UserError, match=r"tab-x\.json holds rows without 'protocols'.*torchcaps reproduce"):
        load_rows(tmp_path, "tab-x")


def test_every_metric_of_an_experiment_has_words_and_a_direction():
    for label in EXPERIMENTS.names():
        for key in EXPERIMENTS[label].metrics:
            assert metric_of(key).better in ("higher", "lower", "neither")
    assert metric_words("test_accuracy") == "test accuracy"
    assert metric_heading("test_accuracy") == "test accuracy, %"
    assert metric_heading("keys") == "parse trees"
    assert metric_of("entropy").better == "lower"
    assert metric_of("sparsity").better == "higher"


def test_rows_of_one_metric_are_found_by_their_settings():
    rows = [a_row("a", "entropy", 1.0), a_row("a", "keys", 2.0), a_row("b", "keys", 3.0)]
    assert {name: row.ours for name, row in by_setting(rows, "keys").items()} == {"a": 2.0, "b": 3.0}
