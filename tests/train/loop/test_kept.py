import pytest
import torch

from torchcaps.train import Machine, StoppedError, load_run, train

from small_runs import StopAfter, saved_rows, small_recipe

CPU = Machine(device="cpu")


def test_the_weights_after_chosen_epochs_stay_and_times_are_those_of_all_epochs(tmp_path):
    result = train(small_recipe(keep_epochs=[1, 3]), tmp_path, CPU)
    assert {path.name for path in tmp_path.glob("epoch-*")} == {"epoch-1.safetensors", "epoch-3.safetensors"}
    assert [load_run(tmp_path, weights=f"epoch-{number}").epoch for number in (1, 3)] == [0, 2]
    assert result["seconds"] == pytest.approx(sum(row["seconds"] for row in saved_rows(tmp_path)), abs=1e-3)
    for row in saved_rows(tmp_path):  # two steps of 16 images in each
        assert row["images_per_second"] * row["seconds"] == pytest.approx(32, rel=0.05)


def test_a_finished_run_that_gets_more_epochs_has_no_result_until_it_had_them(tmp_path):
    first = train(small_recipe(epochs=1), tmp_path, CPU)
    longer = small_recipe(epochs=3)
    with pytest.raises(StoppedError):
        train(longer, tmp_path, CPU, resume=True, watcher=StopAfter(1))
    assert not (tmp_path / "result.json").exists()
    result = train(longer, tmp_path, CPU, resume=True)
    assert (first["metrics"]["epochs"], result["metrics"]["epochs"]) == (1, 3)
    assert [row["epoch"] for row in saved_rows(tmp_path)] == [0, 1, 2]


def test_a_run_that_goes_on_elsewhere_says_where_each_part_was_trained(tmp_path, monkeypatch):
    recipe = small_recipe(epochs=4)
    with pytest.raises(StoppedError):
        train(recipe, tmp_path, CPU, watcher=StopAfter(1))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 999)
    for _ in range(2):  # the second time it stays where it was
        with pytest.raises(StoppedError):
            train(recipe, tmp_path, CPU, resume=True, watcher=StopAfter(1))
    parts = train(recipe, tmp_path, CPU, resume=True)["parts"]
    assert [(part["from_epoch"], "999" in part["device"]) for part in parts] == [(0, False), (1, True)]
    assert {"commit", "versions"} <= parts[0].keys()


def test_a_run_that_stays_where_it_was_has_no_parts(tmp_path):
    with pytest.raises(StoppedError):
        train(small_recipe(epochs=2), tmp_path, CPU, watcher=StopAfter(1))
    assert "parts" not in train(small_recipe(epochs=2), tmp_path, CPU, resume=True)
