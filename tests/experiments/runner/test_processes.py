import json
import multiprocessing
import threading
import time
from concurrent.futures import Future

import pytest

from torchcaps.core import UserError
from torchcaps.data import write_twin
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.runner import Visit, processes, run_in_processes
from torchcaps.experiments.runner.make import missing_runs
from torchcaps.train import Machine

CURVES = EXPERIMENTS["fig:fix_vs_ann"]
FEW = {"fixed 1", "fixed 2"}


@pytest.fixture
def folder(tmp_path):
    """A folder where only two runs are missing."""
    for run in missing_runs(CURVES.planned("smoke", seeds=1), tmp_path):
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

    run_in_processes([CURVES], folder, machine, visit=Visit(0.0), **settings)
    assert not list(folder.rglob("result.json")), "the time was up"

    said = []
    run_in_processes([CURVES], folder, machine, visit=Visit(on_run=said.append), **settings)
    assert {words.rpartition(", seed")[0] for words in said} == FEW
    results = [json.loads(path.read_text()) for path in folder.rglob("result.json")]
    assert len(results) == 2
    assert {result["concurrency"] for result in results} == {2}


@pytest.mark.slow
def test_a_killed_process_is_one_clear_sentence(folder):
    def kill_one():
        while not (children := multiprocessing.active_children()):
            time.sleep(0.05)
        children[0].kill()

    threading.Thread(target=kill_one, daemon=True).start()
    with pytest.raises(UserError, match="finished runs are kept"):
        run_in_processes([CURVES], folder, Machine(device="cpu"), processes=2, budget="smoke", seeds=1)


class OneByOne:
    """Takes the place of a pool of processes, and makes nothing."""

    def __init__(self, *_):
        self.asked, self.settings = [], set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, _, address, *rest):
        self.asked.append((address.label, address.seed))
        self.settings.add(address.setting)
        future = Future()
        future.set_result([])
        return future


def test_runs_of_all_experiments_share_the_processes_but_for_those_that_must_be_alone(tmp_path, monkeypatch):
    pool = OneByOne()
    monkeypatch.setattr(processes, "ProcessPoolExecutor", lambda *_: pool)
    labels = ("fig:flops_vs_acc", "fig:fix_vs_ann", "beyond:coupling-entropy", "fig:reconstruction")
    experiments = [EXPERIMENTS[label] for label in labels]
    run_in_processes(experiments, tmp_path, Machine(device="cpu"), processes=4, seeds=2)
    assert list(dict.fromkeys(pool.asked)) == [
        ("fig:fix_vs_ann", 42),
        ("beyond:coupling-entropy", 42),
        ("fig:fix_vs_ann", 43),
        ("beyond:coupling-entropy", 43),
    ]
    assert "DR-CapsNet, entropy 0.1" in pool.settings
    assert "DR-CapsNet, plain" not in pool.settings  # the run of a table


def test_a_mistyped_device_is_no_failure_of_the_runs(tmp_path):
    with pytest.raises(UserError, match="device must be one of"):
        run_in_processes([CURVES], tmp_path, Machine(device="tpu"), processes=2, budget="smoke", seeds=1)
    assert not list(tmp_path.rglob("error.json"))


def test_the_end_of_a_visit_is_the_same_for_others():
    visit = Visit(3.0)
    assert Visit.until(visit.ends_at).ends_at == pytest.approx(visit.ends_at, abs=1.0)
    assert Visit.until(Visit(0.0).ends_at - 1).is_over
    assert not Visit.until(Visit().ends_at).is_over
