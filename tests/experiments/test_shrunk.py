"""What shrinking gives."""

from types import SimpleNamespace

import torch

from torchcaps.experiments import EXPERIMENTS, shrunk
from torchcaps.experiments.plan import Job, Outcome
from torchcaps.models import create_model
from torchcaps.train import Machine, Silent


def test_a_result_names_the_device_that_networks_were_timed_on(tmp_path, monkeypatch):
    trained = SimpleNamespace(model=create_model("dr_capsnet_tiny_test"))
    outcome = Outcome(metrics={}, parameters=0, seconds=0.0, precision="32")
    size = SimpleNamespace(parameters=1, flops=1, ms={"1": 1.0, "128": 1.0})
    devices = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shrunk, "measure_footprints", lambda *models: [size] * len(models))
    monkeypatch.setattr(Job, "train_network", lambda job: (trained, outcome))
    monkeypatch.setattr(Job, "leave_result", lambda job, outcome: devices.append(job.device))
    run = next(EXPERIMENTS[shrunk.LABEL].planned("smoke"))
    job = Job(run, tmp_path, Machine(device="auto"), Silent())
    shrunk.train_and_shrink(job)
    assert (job.device.type, devices) == ("cuda", [torch.device("cpu")])
