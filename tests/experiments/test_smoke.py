import json

import pytest

from torchcaps.experiments import smoke
from torchcaps.train import Machine


def test_one_seed_of_every_setting_comes_before_the_second_of_any():
    seeds = [seed for _, seed in smoke.planned()]
    assert seeds == sorted(seeds)
    assert len(seeds) == sum(setting.seeds for setting in smoke.SETTINGS)


@pytest.mark.parametrize("setting", smoke.SETTINGS, ids=lambda setting: setting.name)
def test_protocols_say_what_the_runs_got(setting):
    assert "epochs" in setting.protocol


def test_runs_are_made_once_gathered_and_failures_do_not_stop_the_others(tmp_path, monkeypatch):
    changes = (
        "model={name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10, decoder: fc}",
        "data={name: synthetic_mnist, limit: 40, validation: 0.2}",
        "batch_size=8",
        "epochs=1",
    )
    settings = (
        smoke.Setting("broken", "mnist/dr_capsnet_thesis", ("data.name=nothing",)),
        smoke.Setting("small", "mnist/dr_capsnet", changes, seeds=2),
    )
    monkeypatch.setattr(smoke, "SETTINGS", settings)
    errors = smoke.run_missing(tmp_path, 5.0, Machine(device="cpu"))
    assert list(errors) == ["mnist-dr_capsnet_thesis-42"]
    made = (tmp_path / "mnist-dr_capsnet-42" / "result.json").stat().st_mtime_ns
    smoke.run_missing(tmp_path, 5.0, Machine(device="cpu"))
    assert (tmp_path / "mnist-dr_capsnet-42" / "result.json").stat().st_mtime_ns == made
    smoke.gather(tmp_path, tmp_path)
    rows = json.loads((tmp_path / "smoke-mnist.json").read_text())["rows"]
    assert [(row["setting"], row["seeds"]) for row in rows] == [("small", 2)]
