"""Run folders that were damaged or changed: one line that names the file and says what to do."""

import json
import shutil
import zipfile

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from torchcaps.core import UserError
from torchcaps.train import Machine, load_run, train
from torchcaps.train.loop import Silent
from torchcaps.zoo import predict

from small_runs import small_recipe

CPU = Machine(device="cpu")


def recipe(**changes):
    return small_recipe(**{"annealing": {"r_max": 2, "patience": 1}, "epochs": 1, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "run"
    train(recipe(), out, CPU)
    return out


@pytest.fixture
def run(finished, tmp_path):
    """A run that may be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def resume(out, epochs=2):
    return train(recipe(epochs=epochs), out, CPU, resume=True)


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def change_checkpoint(run, edit):
    state = torch.load(run / "last.ckpt", weights_only=True)
    edit(state)
    torch.save(state, run / "last.ckpt")


@pytest.mark.parametrize(
    "edit",
    [
        lambda state: state["model"].update({"stem.weight": torch.zeros(1)}),
        lambda state: state["model"].pop("stem.weight"),
        lambda state: state.update(optimizer={}),
        lambda state: state.update(progress={}),
        lambda state: state.update(progress=3),
        lambda state: state["progress"].update(next_epoch=None),
        lambda state: state["progress"].update(next_epoch=-5),
        lambda state: state["progress"].update(best="x"),
        lambda state: state.update(rows=None),
        lambda state: state.update(rows="x"),
        lambda state: state.update(rows=torch.zeros(1)),
        lambda state: state.update(images=None),
        lambda state: state.update(images=("x", 5)),
        lambda state: state.update(technique={"colour": 3}),
        lambda state: state.update(technique={"rounds": {"elsewhere": 2}}),
        lambda state: state.update(schedule=[]),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_one_line(run, edit):
    change_checkpoint(run, edit)
    with pytest.raises(UserError, match=r"last\.ckpt does not fit this run .*; delete it") as caught:
        resume(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", ["model", "schedule", "technique", "rows"])
def test_a_checkpoint_that_lacks_a_part_is_none(run, part):
    change_checkpoint(run, lambda state: state.pop(part))
    with pytest.raises(UserError, match=r"last\.ckpt is not the checkpoint of a run; delete it"):
        resume(run)


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_checkpoint_with_one_other_bit_is_refused(run, place):
    path = run / "last.ckpt"
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1  # within the tensors; PyTorch would load them
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"last\.ckpt is damaged \(.*delete it to start this run anew"):
        resume(run)


@pytest.mark.parametrize(("old", "new"), [(b"q\x02", b"q\xff"), (b".", b"a")])
def test_a_checkpoint_whose_pickle_is_damaged_is_one_line(run, old, new, recwarn):
    path = run / "last.ckpt"
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            is_pickle = name.endswith("data.pkl")
            archive.writestr(name, content.replace(old, new) if is_pickle else content)
    with pytest.raises(UserError, match=r"last\.ckpt is damaged"):
        resume(run)
    assert not recwarn.list


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"metrics": 3}', '{"metrics": {}}'])
def test_a_result_without_metrics_is_not_taken_for_one(run, content):
    (run / "result.json").write_text(content)
    with pytest.raises(UserError, match=r"result\.json is damaged .*delete it"):
        resume(run, epochs=1)
    (run / "result.json").unlink()
    assert resume(run, epochs=1)["metrics"]["epochs"] == 1


@pytest.mark.parametrize("content", ["null", "[]", "3", '{"model": {"name": "nothing"}}', "[" * 100_000])
def test_a_recipe_that_is_none_is_named(run, content):
    (run / "recipe.json").write_text(content)
    for read in (load_run, resume):
        with pytest.raises(UserError, match=r"recipe\.json"):
            read(run)


def test_a_run_to_start_from_without_a_recipe_is_named(run):
    (run / "recipe.json").write_text("null")
    with pytest.raises(UserError, match=r"recipe\.json is damaged"):
        train(recipe(start_from=str(run)), run.parent / "later", CPU)


@pytest.mark.parametrize("content", [b"{", b"3\n", b"\xff\xfe", b'{"epoch": 0}\n{"epo'])
def test_damaged_metrics_are_named(run, content):
    (run / "metrics.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
        load_run(run).metrics  # noqa: B018


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_weights_that_are_no_floating_point_numbers_are_refused(run, dtype):
    path = run / "weights.safetensors"
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    save_file({name: values.to(dtype) for name, values in load_file(path).items()}, path, metadata=header)
    with pytest.raises(UserError, match=r"weights\.safetensors does not fit .* is of type") as caught:
        load_run(run)
    assert str(dtype).removeprefix("torch.") in str(caught.value)


@pytest.mark.parametrize(
    "header", [{}, {"iterations": '{"elsewhere": 2}'}, {"iterations": '"x"'}, {"epoch": '"x"'}]
)
def test_a_header_that_does_not_fit_is_named(run, header):
    path = run / "weights.safetensors"
    save_file(load_file(path), path, metadata={"iterations": "1", **header} if "epoch" in header else header)
    with pytest.raises(UserError, match=r"weights\.safetensors does not fit"):
        load_run(run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"std": [0.0]}, "std divides the images and must be positive"),
        ({"std": []}, "a number for each of 1 channels"),
        ({"mean": [0.1, 0.2]}, "a number for each of 1 channels"),
        ({"height": 0}, "must be at least 1"),
        ({"classes": ["a", "b", "c"]}, "10 classes"),
    ],
)
def test_a_card_that_cannot_prepare_images_is_refused(run, changes, message):
    change(run / "data.json", **changes)
    with pytest.raises(UserError, match=rf"data\.json.*{message}|{message}.*data\.json"):
        predict(load_run(run), [])


def test_a_card_that_does_not_say_how_images_fit_is_refused(run):
    card = json.loads((run / "data.json").read_text())
    del card["fit"]
    (run / "data.json").write_text(json.dumps(card))
    with pytest.raises(UserError, match=r"data\.json: the key 'fit' is missing"):
        load_run(run)


@pytest.mark.parametrize("device", ["meta", "gpu", "cpu:x"])
def test_a_run_is_loaded_where_it_can_compute(run, device):
    with pytest.raises(UserError, match="device"):
        load_run(run, device)


def test_paths_may_be_text(finished):
    assert load_run(str(finished)).folder == finished


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_folder_that_is_deleted_while_training_is_no_saved_run(tmp_path, epochs):
    out = tmp_path / "run"

    class Deleting(Silent):
        def epoch_started(self, epoch, steps):
            shutil.rmtree(out)

    with pytest.raises(UserError, match="was deleted or moved while the run trained"):
        train(recipe(epochs=epochs), out, CPU, watcher=Deleting())
    assert not out.exists()
