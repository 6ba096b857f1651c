import gzip
import io
import json
import tarfile

import pytest

from torchcaps.core import UserError
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.runner import count_runs, merge_runs, pack_runs
from torchcaps.train import load_recipe
from torchcaps.train.recipe import recipe_as_json

from command import completed, torchcaps

EXPERIMENT = EXPERIMENTS["smoke-mnist"]


def result(seed, accuracy=0.5):
    made_by = {"commit": None, "versions": {}, "device": "cpu", "precision": "32", "parameters": 1}
    recipe = recipe_as_json(load_recipe("mnist/dr_capsnet"))
    metrics = {"test_accuracy": accuracy}
    return {"recipe": recipe, "seed": seed, "metrics": metrics, "seconds": 1.0, **made_by}


MINE = result(42, 0.75)
GOOD = json.dumps(MINE).encode()


def leave(out, number, name="result.json", content=None):
    """Stands for a run that was made."""
    run = list(EXPERIMENT.planned("quick"))[number]
    run.folder(out).mkdir(parents=True, exist_ok=True)
    (run.folder(out) / name).write_text(json.dumps(content or result(run.seed)))
    return run.folder(out)


def pack(path, members):
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("is_packed", [False, True])
def test_runs_of_another_machine_are_merged_and_duplicates_recognised(is_packed, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    leave(here, 0, content=MINE)
    for number in range(3):
        leave(there, number)
    leave(there, 3, "error.json")
    (leave(there, 0) / "weights.safetensors").write_bytes(b"large")
    source = there
    if is_packed:
        source = tmp_path / "runs.tar.gz"
        assert pack_runs(there, source) == 4  # results and errors, nothing else
    assert merge_runs(EXPERIMENT, source, here) == 2
    assert merge_runs(EXPERIMENT, source, here) == 0
    assert count_runs(EXPERIMENT.planned("quick"), here).done == 3


def test_what_is_here_is_kept(tmp_path):
    mine = leave(tmp_path / "here", 0, content=MINE)
    leave(tmp_path / "there", 0)
    assert merge_runs(EXPERIMENT, tmp_path / "there", tmp_path / "here") == 0
    assert json.loads((mine / "result.json").read_text()) == MINE


def test_a_run_that_failed_here_and_was_made_elsewhere_is_done(tmp_path):
    leave(tmp_path / "here", 0, "error.json")
    leave(tmp_path / "there", 0)
    merge_runs(EXPERIMENT, tmp_path / "there", tmp_path / "here")
    counts = count_runs(EXPERIMENT.planned("quick"), tmp_path / "here")
    assert (counts.done, counts.failed, counts.left) == (1, 0, counts.planned - 1)


def test_an_archive_cannot_write_elsewhere(tmp_path):
    source = pack(
        tmp_path / "bad.tar.gz",
        {
            "../quick/run-1/result.json": GOOD,
            "smoke-mnist/quick/../result.json": GOOD,
            "/smoke-mnist/quick/run-1/result.json": GOOD,
            "smoke-mnist/quick/run-1/recipe.json": GOOD,
            "smoke-mnist/quick/run-2/result.json": GOOD,
        },
    )
    here = tmp_path / "deep" / "here"
    assert merge_runs(EXPERIMENT, source, here) == 1
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")]
    assert written == ["deep/here/smoke-mnist/quick/run-2/result.json"]


def test_only_results_of_the_experiment_and_of_a_sensible_size_are_merged(tmp_path):
    members = {
        "other/quick/run-1/result.json": GOOD,
        "smoke-mnist/quick/run-1/result.json": GOOD + b" " * (8 << 20),
        "smoke-mnist/quick/run-2/result.json": GOOD,
    }
    here = tmp_path / "here"
    assert merge_runs(EXPERIMENT, pack(tmp_path / "all.tar.gz", members), here) == 1
    assert [path.parent.name for path in here.rglob("result.json")] == ["run-2"]


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "torn.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(UserError, match="no archive of results"):
        merge_runs(EXPERIMENT, tmp_path / "torn.tar.gz", tmp_path)
    with pytest.raises(UserError, match="no archive of results"):
        merge_runs(EXPERIMENT, pack(tmp_path / "x.tar.gz", {"a/full/b/result.json": b"{"}), tmp_path)
    with pytest.raises(UserError, match="not the result of a run"):
        merge_runs(EXPERIMENT, pack(tmp_path / "x.tar.gz", {"a/full/b/result.json": b"[]"}), tmp_path)
    with pytest.raises(UserError, match="there are no runs at"):
        merge_runs(EXPERIMENT, tmp_path / "absent", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"9" * 5000,
        b'{"recipe": {}, "seed": 0, "metrics": {"loss": NaN}}',
        b'{"recipe": null, "seed": 0, "metrics": {}}',
        b'{"recipe": {}, "seed": 0, "metrics": [1]}',
        b'{"recipe": {}, "seed": 0, "metrics": {"loss": "1"}}',
        json.dumps({**MINE, "annealing": 3}).encode(),
        json.dumps({**MINE, "data_protocol": []}).encode(),
        json.dumps({**MINE, "series": None}).encode(),
        json.dumps({**MINE, "series": {"loss": [[1], 2]}}).encode(),
        json.dumps({**MINE, "pictures": {"a": 3}}).encode(),
        b"\xff",
    ],
    ids=[
        "deep",
        "digits",
        "nan",
        "no recipe",
        "no metrics",
        "no number",
        "annealing",
        "protocol",
        "series",
        "ragged",
        "pictures",
        "no text",
    ],
)
def test_a_result_that_is_no_plain_data_is_refused_in_one_line(tmp_path, content):
    source = pack(tmp_path / "x.tar.gz", {"smoke-mnist/quick/run-1/result.json": content})
    with pytest.raises(UserError) as caught:
        merge_runs(EXPERIMENT, source, tmp_path / "here")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "here").rglob("*.json"))


def test_an_archive_whose_header_is_larger_than_memory_is_refused_in_one_line(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 61
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT)))
    with pytest.raises(UserError, match=r"x\.tar\.gz is no archive of results that can be read: \w"):
        merge_runs(EXPERIMENT, tmp_path / "x.tar.gz", tmp_path / "here")


def test_an_archive_torn_in_the_middle_is_refused_in_one_line(tmp_path):
    source = pack(tmp_path / "x.tar.gz", {"smoke-mnist/quick/run-1/result.json": GOOD})
    whole = source.read_bytes()
    for torn in (b"", whole[: len(whole) // 2], whole[:40] + bytes(40) + whole[80:]):
        source.write_bytes(torn)
        with pytest.raises(UserError, match="no archive of results") as caught:
            merge_runs(EXPERIMENT, source, tmp_path / "here")
        assert "\n" not in str(caught.value)


def test_the_command_says_where_the_errors_of_failed_runs_are(tmp_path):
    folder = next(iter(EXPERIMENT.planned("quick"))).folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "error.json").write_text("{}")
    command = "reproduce", "smoke-mnist", "--budget", "quick", "--minutes", 0
    done = completed(*command, "--out", tmp_path, "--results", tmp_path / "r")
    assert "0 of 24 runs done, 1 failed (why stands in error.json" in done.stdout
    assert f"below {tmp_path / 'smoke-mnist'}; delete it to try again" in done.stdout
    assert done.returncode == 1


def test_the_command_merges_and_packs(tmp_path):
    leave(tmp_path / "there", 0)
    options = ["--budget", "quick", "--minutes", 0, "--out", tmp_path / "out", "--data-dir", tmp_path]
    options += ["--merge", tmp_path / "there", "--pack", tmp_path / "p.tar.gz", "--results", tmp_path / "r"]
    said = torchcaps("reproduce", "smoke-mnist", *options)
    assert "1 files packed" in said
    assert f"gathered in {tmp_path / 'r' / 'smoke-mnist.md'}" in said
    assert "smoke-mnist: 1 of 24 runs done, 0 failed" in said
    several = torchcaps("reproduce", "fig:annealing", "smoke-mnist", *options, "--json")
    assert list(json.loads(several)) == ["fig:annealing", "smoke-mnist"]
    (row,) = json.loads((tmp_path / "r" / "smoke-mnist.json").read_text())["rows"]
    assert row["ours"] == 50


def test_packing_again_keeps_what_other_runs_left_in_the_archive(tmp_path):
    archive = tmp_path / "runs.tar.gz"
    leave(tmp_path / "first", 0, content=MINE)
    assert pack_runs(tmp_path / "first", archive) == 1
    leave(tmp_path / "second", 1)
    assert pack_runs(tmp_path / "second", archive) == 2
    assert merge_runs(EXPERIMENT, archive, tmp_path / "all") == 2
    newer = leave(tmp_path / "third", 0, content=result(42, 0.25))
    assert pack_runs(tmp_path / "third", archive) == 2  # the run of `out` replaces its older result
    assert merge_runs(EXPERIMENT, archive, tmp_path / "newer") == 2
    merged = tmp_path / "newer" / newer.relative_to(tmp_path / "third") / "result.json"
    assert json.loads(merged.read_text())["metrics"]["test_accuracy"] == 0.25
