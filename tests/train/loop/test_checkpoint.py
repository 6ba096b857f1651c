import errno
import resource

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.storage import load_weights, save_weights, write_atomically, write_json
from torchcaps.train.loop.checkpoint import load_checkpoint, save_checkpoint


def test_a_full_disk_loses_nothing(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, {"kept": True})
    before = path.read_text()

    def fail(draft):
        draft.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        UserError, match=r"cannot write .*No space left on device; what was there before is kept"
    ):
        write_atomically(path, fail)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


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


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*(exists|[Nn]ot a directory)"):
        write_json(tmp_path / "file" / "result.json", {})


def test_weights_carry_their_header(tmp_path):
    save_weights(tmp_path / "w", {"a": torch.arange(3.0)}, {"epoch": 4, "model": {"name": "x"}})
    tensors, info = load_weights(tmp_path / "w")
    assert torch.equal(tensors["a"], torch.arange(3.0))
    assert info == {"epoch": 4, "model": {"name": "x"}}


def test_a_checkpoint_cannot_run_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("executed",)

    torch.save({"model": Trap()}, tmp_path / "evil.ckpt")
    with pytest.raises(UserError, match="damaged"):
        load_checkpoint(tmp_path / "evil.ckpt")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(UserError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "none")
    with pytest.raises(UserError, match="no weights at"):
        load_weights(tmp_path / "none")
