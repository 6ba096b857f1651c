import json
import multiprocessing
import threading
import time

import pytest

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.experiments import processes
from torchcaps.experiments.catalogue import EXPERIMENTS
from torchcaps.experiments.processes import run_in_processes
from torchcaps.experiments.runner import Visit, missing_runs
from torchcaps.train import Machine

CURVES = EXPERIMENTS["fig:fix_vs_ann"]
FEW = {"fixed 1", "fixed 2"}


@pytest.fixture
def folder(tmp_path):
    """A folder where only two runs are missing."""
    for run in missing_runs(CURVES, tmp_path, budget="smoke", seeds=1):
        if run.setting.name not in FEW:
            run.folder(tmp_path).mkdir(parents=True)
            (run.folder(tmp_path) / "error.json").write_text("{}")
    return tmp_path


@pytest.mark.slow
def test_processes_make_the_missing_runs(folder, tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    write_twin("mnist", data, 240)
    machine = Machine(device="cpu", data_dir=data)
    settings = {"processes": 2, "budget": "smoke", "seeds": 1}

    counts = run_in_processes(CURVES, folder, machine, visit=Visit(0.0), **settings)
    assert counts["left"] == 2, "the time was up"

    said = []
    counts = run_in_processes(CURVES, folder, machine, visit=Visit(on_run=said.append), **settings)
    assert (counts["done"], counts["left"]) == (2, 0)
    assert {words.rpartition(", seed")[0] for words in said} == FEW
    results = [json.loads(path.read_text()) for path in folder.rglob("result.json")]
    assert {result["device"] for result in results} != {None}


def test_a_killed_process_is_one_clear_sentence(folder):
    def kill_one():
        while not (children := multiprocessing.active_children()):
            time.sleep(0.05)
        children[0].kill()

    threading.Thread(target=kill_one, daemon=True).start()
    with pytest.raises(UserError, match="finished runs are kept"):
        run_in_processes(CURVES, folder, Machine(device="cpu"), processes=2, budget="smoke", seeds=1)


@pytest.mark.parametrize(("label", "number"), [("fig:flops_vs_acc", 4), ("fig:fix_vs_ann", 1)])
def test_runs_that_must_be_alone_are(label, number, tmp_path, monkeypatch):
    asked = []

    def run_missing(experiment, *_, **__):
        asked.append(experiment.label)
        return {}

    monkeypatch.setattr(processes, "run_missing", run_missing)
    run_in_processes(EXPERIMENTS[label], tmp_path, Machine(device="cpu"), processes=number)
    assert asked == [label]


def test_a_mistyped_device_is_no_failure_of_the_runs(tmp_path):
    with pytest.raises(UserError, match="device must be one of"):
        run_in_processes(CURVES, tmp_path, Machine(device="tpu"), processes=2, budget="smoke", seeds=1)
    assert not list(tmp_path.rglob("error.json"))


def test_the_end_of_a_visit_is_the_same_for_others():
    visit = Visit(3.0)
    assert Visit.until(visit.ends_at).ends_at == pytest.approx(visit.ends_at, abs=1.0)
    assert Visit.until(Visit(0.0).ends_at - 1).is_over
    assert not Visit.until(Visit().ends_at).is_over
