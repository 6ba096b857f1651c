"""A run that is being made."""

import pytest

from torchcaps.experiments.plan import Experiment, Job, Setting
from torchcaps.train import Machine, Silent

TINY = {
    "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
    "data": {"name": "synthetic_mnist", "limit": 20, "validation": 0.2},
    "loss.reconstruction": 0,
    "batch_size": 16,
    "epochs": 1,
}


@pytest.fixture
def job(tmp_path):
    setting = Setting(name="tiny", recipe="mnist/dr_capsnet", changes=TINY)
    experiment = Experiment(
        label="tab:one", chapter="none", title="one", settings=(setting,), data=(), gpu_minutes=0
    )
    return Job(next(experiment.planned("full")), tmp_path, Machine(device="cpu"), Silent())


def test_other_data_changes_nothing_but_where_datasets_lie(job, tmp_path):
    other = job.with_data(tmp_path / "data")
    assert (other.data_dir, job.data_dir) == (tmp_path / "data", None)
    assert (other.run, other.folder, other.device) == (job.run, job.folder, job.device)


def test_a_tidy_training_leaves_no_checkpoint_and_is_not_made_again(job):
    whole, tidy = job.folder / "whole", job.folder / "tidy"
    assert job.train(job.run.recipe, whole).metrics == job.train_and_tidy(job.run.recipe, tidy).metrics
    kept = {path.name for path in whole.iterdir()} - {path.name for path in tidy.iterdir()}
    assert kept == {"last.ckpt"}
    before = (tidy / "result.json").stat().st_mtime_ns
    job.train_and_tidy(job.run.recipe, tidy)
    assert (tidy / "result.json").stat().st_mtime_ns == before
