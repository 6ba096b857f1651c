"""Overlaid digits that are drawn one by one."""

import json

import numpy as np
import pytest
import torch
from experiments.made_rows import a_row
from torch.testing import assert_close

from torchcaps.core.errors import UserError
from torchcaps.data import OverlaidImages
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import Job, join_changes
from torchcaps.experiments.records import Details
from torchcaps.experiments.robustness import segmented
from torchcaps.experiments.robustness.claims import PAIRS
from torchcaps.experiments.robustness.segmented import (
    digit_means,
    draw_digits,
    draw_segmented,
    match_classes,
)
from torchcaps.train import Machine, Silent, load_run


def test_a_found_class_stands_for_its_digit_and_a_wrong_one_for_what_is_left():
    true = torch.tensor([[1, 2]] * 5)
    found = torch.tensor([[1, 2], [2, 1], [3, 1], [2, 3], [4, 5]])
    expected = torch.tensor([[1, 2], [1, 2], [1, 3], [3, 2], [4, 5]])
    assert torch.equal(match_classes(found, true), expected)


def test_the_mean_of_a_class_is_that_of_its_digits_alone():
    alone = torch.randint(256, (6, 2, 4, 4), dtype=torch.uint8)
    labels = torch.tensor([[0, 1], [1, 2], [2, 0], [0, 2], [1, 0], [2, 1]])
    data = OverlaidImages(torch.zeros(6, 1, 4, 4, dtype=torch.uint8), labels, alone, ("a", "b", "c"))
    found = digit_means(data)
    for number in range(3):
        expected = np.mean(
            [alone[i, k].numpy() / 255 for i in range(6) for k in range(2) if labels[i, k] == number], axis=0
        )
        assert_close(found[number].double(), torch.from_numpy(expected), atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny run of the label, as a folder."""
    out, experiment = tmp_path_factory.mktemp("pairs"), EXPERIMENTS[PAIRS]
    run = next(iter(experiment.planned("smoke", 1)))
    tiny = {
        "model.stem_channels": 4,
        "model.primary_types": 2,
        "data": {"name": "multimnist:base=synthetic_mnist,train=60,test=20"},
    }
    setting = type(run.setting)(
        name="tiny", recipe=run.setting.recipe, changes=join_changes(run.setting.changes, tiny)
    )
    small = type(run)(experiment=experiment, setting=setting, budget="smoke", seed=42)
    job = Job(small, out, Machine(device="cpu"), Silent())
    experiment.perform(job)
    return job.folder


def test_a_run_on_overlaid_digits_leaves_errors_and_a_picture_of_each_digit(finished, monkeypatch):
    result = json.loads((finished / "result.json").read_text())
    found = result["metrics"]
    assert found["whole_image_error"] > found["class_mean_error"] > 0
    assert found["reconstruction_error"] > 0
    details = Details.from_json(result)
    assert details.pictures["digits"].unpack().shape == (8, 5, 36, 36)
    rows = [a_row("DR-CapsNet, shift 4", "reconstruction_error", 1.0, details=details)]
    assert len(draw_segmented(rows)) > 1000
    drawn = []
    monkeypatch.setattr(segmented, "to_png", lambda figure, scale: drawn.append(figure) or b"picture")
    draw_segmented(rows)
    labels = [text.get_text() for text in drawn[0].texts][1::2]
    assert labels == ["image", "digit", "drawing", "digit", "drawing"]


def test_runs_on_single_digits_are_refused(finished, monkeypatch):
    run = load_run(finished / "training", "cpu")
    monkeypatch.setattr(segmented, "load_split", lambda *_, **__: (None, None))
    with pytest.raises(UserError, match="no images of two objects"):
        draw_digits(run, seed=0)
