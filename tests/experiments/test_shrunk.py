"""What shrinking gives."""

from types import SimpleNamespace

import torch
from experiments.made_rows import seeds_row

from torchcaps.experiments import EXPERIMENTS, shrunk
from torchcaps.experiments.plan import Job, Outcome
from torchcaps.models import create_model
from torchcaps.train import Machine, Silent

EXPERIMENT = EXPERIMENTS[shrunk.LABEL]


def test_a_result_names_the_device_that_networks_were_timed_on(tmp_path, monkeypatch):
    trained = SimpleNamespace(model=create_model("dr_capsnet_tiny_test"))
    outcome = Outcome(metrics={}, parameters=0, seconds=0.0, precision="32")
    size = SimpleNamespace(parameters=1, flops=1, ms={"1": 1.0, "128": 1.0})
    devices = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shrunk, "measure_footprints", lambda *models: [size] * len(models))
    monkeypatch.setattr(Job, "train_network", lambda job: (trained, outcome))
    monkeypatch.setattr(Job, "leave_result", lambda job, outcome: devices.append(job.device))
    run = next(EXPERIMENT.planned("smoke"))
    job = Job(run, tmp_path, Machine(device="auto"), Silent())
    shrunk.train_and_shrink(job)
    assert (job.device.type, devices) == ("cuda", [torch.device("cpu")])


def verdict(claim, **values):
    """What a claim says of the network as trained and shrunk with these numbers, over three seeds."""
    rows = [
        seeds_row(setting.name, metric, value, spread=value / 1000)
        for metric, pair in values.items()
        for setting, value in zip(EXPERIMENT.settings, pair, strict=True)
    ]
    return EXPERIMENT.claims[claim].check(lambda label: rows if label == shrunk.LABEL else []).verdict


def test_shrinking_pays_only_where_time_and_size_fall():
    gains = {"parameters_shrunk": (100, 50), "cpu_share_1": (100.0, 90.0), "cpu_share_128": (100.0, 60.0)}
    assert verdict(0, **gains) == "beyond"
    assert verdict(0, **{**gains, "cpu_share_1": (100.0, 110.0)}) == "not confirmed"
    assert verdict(0, **{**gains, "cpu_share_1": (100.0, 99.9)}) == "open"
    assert verdict(0, **{**gains, "parameters_shrunk": (50, 100)}) == "not confirmed"
    assert verdict(0, cpu_share_1=(100.0, 90.0)) == "open"


def test_a_shrunk_network_may_lose_half_a_point():
    assert verdict(1, test_accuracy=(98.0, 98.0)) == "beyond"
    assert verdict(1, test_accuracy=(98.0, 97.0)) == "not confirmed"
    assert verdict(1, test_accuracy=(98.0, 97.55)) == "open"
    assert verdict(1) == "open"
