import resource

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.storage import save_weights
from torchcaps.train.loop.checkpoint import load_checkpoint, save_checkpoint


def test_a_disk_that_takes_no_more_is_one_sentence_whoever_writes(tmp_path):
    tensors = {"a": torch.zeros(10_000)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for write in (save_checkpoint, lambda path, state: save_weights(path, state, {})):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        try:
            with pytest.raises(UserError, match=r"cannot write .*File too large.* what was there before"):
                write(tmp_path / "file", tensors)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_cannot_run_code(tmp_path, capsys):
    class Trap:
        def __reduce__(self):
            return print, ("executed",)

    torch.save({"model": Trap()}, tmp_path / "evil.ckpt")
    with pytest.raises(UserError, match="damaged"):
        load_checkpoint(tmp_path / "evil.ckpt")
    assert capsys.readouterr().out == ""


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(UserError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "none")
