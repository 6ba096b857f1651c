import stat

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.storage import load_weights, save_weights

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
