from itertools import count
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


def test_many_files_of_one_name_are_told_apart_at_once(monkeypatch):
    tried = []
    monkeypatch.setattr(
        "torchcaps.storage.names.count", lambda first: iter(tried.append(n) or n for n in count(first))
    )
    stems = distinct_stems([f"{folder}/image.png" for folder in range(100)])
    assert stems == ["image", *(f"image~{number}" for number in range(2, 101))]
    assert len(tried) == 99  # one for each, and not all of those before it again


def test_the_home_of_somebody_unknown_is_one_line(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/data") == Path("/home/me/data")
    with pytest.raises(UserError, match="~nobody-of-that-name/data: there is no such home folder"):
        expanded("~nobody-of-that-name/data")
