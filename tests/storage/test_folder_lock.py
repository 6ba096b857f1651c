import threading

import pytest

from torchcaps.core import UserError
from torchcaps.storage.folder_lock import one_at_a_time

pytest.importorskip("fcntl", reason="nobody waits on Windows")


def test_who_asks_for_a_taken_folder_waits_for_its_turn(tmp_path):
    told, is_asking = [], threading.Event()

    def ask():
        is_asking.set()
        with one_at_a_time(tmp_path / "new"):
            told.append("second")

    with one_at_a_time(tmp_path / "new"):
        waiting = threading.Thread(target=ask)
        waiting.start()
        assert is_asking.wait(10)
        waiting.join(0.05)
        assert waiting.is_alive()
        told.append("first")
    waiting.join(10)
    assert told == ["first", "second"]


def test_a_turn_ends_with_an_error_and_other_folders_do_not_wait(tmp_path):
    with pytest.raises(ValueError, match="no"), one_at_a_time(tmp_path):
        raise ValueError("no")
    with one_at_a_time(tmp_path), one_at_a_time(tmp_path / "other"):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*file"), one_at_a_time(tmp_path / "file"):
        pass
