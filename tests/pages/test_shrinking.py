import shutil

import pytest
import torch
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.pages import shrink_and_measure, shrinking
from torchcaps.prune import measure_size
from torchcaps.storage import load_weights, read_json, save_weights, write_json
from torchcaps.train import Machine, evaluate_run, load_run, train

from small_runs import small_recipe


@pytest.fixture(scope="module")
def pruned(tmp_path_factory):
    """A run in which whole capsules and channels are zero."""
    folder = tmp_path_factory.mktemp("pruned")
    train(small_recipe(epochs=1, pruning={"strength": 1e-2}), folder, Machine(device="cpu"))
    state, info = load_weights(folder / "weights.safetensors")
    state["classes.weight"][::3] = 0.0
    state["stem.weight"][1] = 0.0
    save_weights(folder / "weights.safetensors", state, info)
    return folder


@pytest.mark.slow
def test_a_shrunk_run_answers_as_the_pruned_one_and_can_be_trained_on(pruned, tmp_path):
    report = shrink_and_measure(pruned, tmp_path / "small", force=True)
    assert report.largest_difference < 1e-6
    assert all(
        getattr(report.after, key) < getattr(report.before, key) for key in ("parameters", "flops", "bytes")
    )
    assert set(report.after.ms) == {"1", "128"}
    run = load_run(tmp_path / "small")
    assert run.model.config.voters == 48
    assert run.model.config.stem_channels == 3
    first, second = (evaluate_run(each) for each in (load_run(pruned), run))
    assert first["confusion"] == second["confusion"]
    train(run.recipe, tmp_path / "tuned", Machine(device="cpu"))
    tuned = load_run(tmp_path / "tuned").model
    assert torch.equal(tuned.classes.voters, run.model.classes.voters)
    with pytest.raises(UserError, match="already holds a run"):
        shrink_and_measure(pruned, tmp_path / "small", force=True)


def test_the_command_prints_both_sizes(pruned, tmp_path):
    arguments = ["shrink", str(pruned), "--out", str(tmp_path / "small"), "--device", "cpu", "--force"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "parameters" in done.stdout
    assert "activations differ by at most" in done.stdout


@pytest.fixture
def measured(monkeypatch):
    """Times of the next two networks that are measured, the run first."""

    def measure(*times):
        def footprints(*models):
            return [
                shrinking.Footprint(**measure_size(model)._asdict(), ms={"1": one, "128": many})
                for model, (one, many) in zip(models, times, strict=True)
            ]

        monkeypatch.setattr(shrinking, "measure_footprints", footprints)

    return measure


def test_a_slower_network_is_refused_before_anything_is_written(pruned, tmp_path, measured):
    measured((2.35, 40.0), (4.0, 39.0))
    out = tmp_path / "small"
    with pytest.raises(UserError, match=r"slower: .* 4.00 instead of 2.35 ms for 1 image.*group=type"):
        shrink_and_measure(pruned, out)
    assert not out.exists()


def test_a_tenth_more_time_is_not_yet_slower(pruned, tmp_path, measured):
    measured((2.0, 40.0), (2.16, 43.0))
    shrink_and_measure(pruned, tmp_path / "small")
    measured((2.0, 40.0), (2.1, 46.0))
    with pytest.raises(UserError, match=r"takes 46.00 instead of 40.00 ms for 128 image\(s\); nothing"):
        shrink_and_measure(pruned, tmp_path / "slower")


def test_a_faster_network_needs_no_force(pruned, tmp_path, measured):
    measured((2.0, 40.0), (2.1, 20.0))
    shrink_and_measure(pruned, tmp_path / "small")
    assert (tmp_path / "small" / "recipe.json").is_file()


def test_a_network_without_zeros_is_refused(pruned, tmp_path, measured):
    whole = tmp_path / "whole"
    shutil.copytree(pruned, whole)
    state, info = load_weights(whole / "weights.safetensors")
    save_weights(whole / "weights.safetensors", {key: value + 0.01 for key, value in state.items()}, info)
    measured((2.0, 40.0), (2.0, 40.0))
    with pytest.raises(UserError, match=r"gain nothing: .*group=type"):
        shrink_and_measure(whole, tmp_path / "small")
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    ("pruning", "advice"),
    [
        ({"group": "type", "strength": 0.02}, r"pruning.strength above 0.02, or .* --force"),
        ({"group": "capsule"}, r"train with pruning.group=type"),
        (None, r"trained without pruning: train with pruning.group=type"),
    ],
)
def test_the_advice_of_a_refusal_is_not_what_the_run_has_already(pruned, tmp_path, measured, pruning, advice):
    run = tmp_path / "run"
    shutil.copytree(pruned, run)
    recipe = read_json(run / "recipe.json")
    write_json(run / "recipe.json", {**recipe, "pruning": pruning})
    measured((2.0, 40.0), (4.0, 40.0))
    with pytest.raises(UserError, match=advice):
        shrink_and_measure(run, tmp_path / "small")
