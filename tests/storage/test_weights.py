import stat

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.storage import load_weights, save_weights, wrong_kind

STATE = {"stem.weight": torch.arange(6.0).reshape(2, 3), "größe": torch.ones(2, dtype=torch.float16)}
INFO = {
    "model": "a_model",
    "config": {"channels": [3, 4], "name": 'with "quotes" and \\'},
    "epoch": 7,
    "ü": "ß",
}


@pytest.mark.parametrize("info", [INFO, {}], ids=["with a header", "without"])
def test_what_was_saved_is_loaded(tmp_path, info):
    save_weights(tmp_path / "weights.safetensors", STATE, info)
    state, found = load_weights(tmp_path / "weights.safetensors")
    assert found == info
    assert state.keys() == STATE.keys()
    assert all(torch.equal(state[name], STATE[name]) for name in STATE)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    info = {f"key {number}": number for number in range(8)}
    paths = [tmp_path / f"{number}.safetensors" for number in range(4)]
    for path in paths:
        save_weights(path, STATE, info)
    assert len({path.read_bytes() for path in paths}) == 1


def test_others_may_read_the_file(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(path, STATE, INFO)
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_cut_file_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(path, STATE, INFO)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged"):
        load_weights(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="no weights at"):
        load_weights(tmp_path / "none")


@pytest.mark.parametrize(
    ("stored", "own", "problem"),
    [
        (torch.float16, torch.float32, ""),
        (torch.int32, torch.int64, ""),
        (torch.int64, torch.float32, "b is of type int64"),
        (torch.complex64, torch.float32, "b is of type complex64"),
        (torch.float32, torch.int64, "b is of type float32"),
    ],
)
def test_a_tensor_that_would_be_cut_is_named(stored, own, problem):
    state = {
        "a": torch.zeros(1),
        "b": torch.zeros(1, dtype=stored),
        "only here": torch.zeros(1, dtype=torch.int8),
    }
    model = {"a": torch.zeros(1), "b": torch.zeros(1, dtype=own), "only there": torch.zeros(1)}
    assert wrong_kind(state, model) == problem
