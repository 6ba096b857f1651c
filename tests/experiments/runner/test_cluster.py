import json
import os
import sys
from pathlib import Path

import pytest

from torchcaps.core import UserError
from torchcaps.experiments.plan import Experiment, Outcome, Setting
from torchcaps.experiments.plan.job import train_recipe
from torchcaps.experiments.runner import RunCounts, run_on_cluster
from torchcaps.train import Machine

CPU = Machine(device="cpu")
NAMES = ("one", "two", "killed", "fails")


def experiment(perform):
    return Experiment(
        label="fig:cluster",
        chapter="none",
        title="small",
        data=("mnist5k",),
        gpu_minutes=1,
        seeds=2,
        settings=tuple(Setting(name=name, recipe="mnist/dr_capsnet_minimal") for name in NAMES),
        perform=perform,
    )


def test_a_missing_ray_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"torchcaps\[cluster\]"):
        run_on_cluster(experiment(train_recipe), tmp_path, CPU, address="local")


@pytest.mark.slow
def test_a_killed_worker_loses_no_finished_run(tmp_path):
    pytest.importorskip("ray", reason='needs the extra "cluster"')
    killed = str(tmp_path / "killed-once")

    def perform(job):
        name = job.run.setting.name
        if name == "fails":
            raise RuntimeError("of its own")
        if name == "killed" and not Path(killed).exists():
            Path(killed).touch()
            os._exit(1)  # the worker, in the middle of a run
        outcome = Outcome(metrics={"test_accuracy": 0.5}, seconds=1.0, precision="32", parameters=1)
        job.leave_result(outcome)

    counts = run_on_cluster(experiment(perform), tmp_path / "runs", CPU, address="local")
    assert Path(killed).exists()
    assert counts == RunCounts(done=6, failed=2, left=0, planned=8)
    results = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("result.json")]
    assert sorted(result["seed"] for result in results) == [42] * 3 + [43] * 3
    assert {result["concurrency"] for result in results} == {1}
    assert "of its own" in next((tmp_path / "runs").rglob("error.json")).read_text()
