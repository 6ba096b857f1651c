from pathlib import Path

import pytest

from torchcaps.core import UserError
from torchcaps.storage import distinct_stems, expanded


@pytest.mark.parametrize(
    ("names", "stems"),
    [
        (["x~2.png", "x.png", "dir/x.png"], ["x~2", "x", "x~3"]),
        (["x.png", "dir/x.png", "x~2.png"], ["x", "x~2", "x~2~2"]),
        (["index.png", "ok.png", "Index.png"], ["index~2", "ok", "Index~3"]),
        (["test:3", "test-3.png"], ["test-3", "test-3~2"]),
    ],
)
def test_no_two_files_have_one_name(names, stems):
    assert distinct_stems(names, reserved=["index"]) == stems


def test_the_home_of_somebody_unknown_is_one_line(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/data") == Path("/home/me/data")
    with pytest.raises(UserError, match="~nobody-of-that-name/data: there is no such home folder"):
        expanded("~nobody-of-that-name/data")
