"""Arrays in files."""

import io
import zipfile

import numpy as np
import pytest

from torchcaps.core import UserError
from torchcaps.storage import Form, read_array, read_arrays, write_arrays

FORMS = {"numbers": Form("iu", 1)}


def written(path, numbers):
    write_arrays(path, {"numbers": numbers})
    return path


def with_member(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("numbers.npy", content)
    return path


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def objects():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def test_arrays_come_back_as_they_were(tmp_path):
    found = read_arrays(written(tmp_path / "a.npz", np.arange(5)), FORMS, "list")
    assert found["numbers"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("values", [np.zeros(2), np.array(5), np.array(["a"]), np.zeros((2, 2), int)])
def test_an_array_of_another_form_is_refused(tmp_path, values):
    with pytest.raises(UserError, match=r"a\.npz is no list: numbers holds"):
        read_arrays(written(tmp_path / "a.npz", values), FORMS, "list")
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(UserError, match=r"a\.npy is no list: it holds"):
        read_array(tmp_path / "a.npy", FORMS["numbers"], "list")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        objects(),  # pickled
        header(b"(" * 8000 + b"\n"),
        header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999,)}\n"),
    ],
    ids=["empty", "pickled", "deep", "huge"],
)
def test_a_damaged_member_is_one_line(tmp_path, content):
    with pytest.raises(UserError, match=r"a\.npz is no list") as raised:
        read_arrays(with_member(tmp_path / "a.npz", content), FORMS, "list")
    assert "\n" not in str(raised.value)


def outcome(path):
    try:
        return read_arrays(path, FORMS, "list")["numbers"].tolist()
    except UserError as error:
        return str(error)


def test_every_changed_byte_gives_the_same_numbers_or_one_short_line(tmp_path):
    content = written(tmp_path / "a.npz", np.arange(40)).read_bytes()
    for place in range(len(content)):
        changed = content[:place] + bytes([255 - content[place]]) + content[place + 1 :]
        (tmp_path / "b.npz").write_bytes(changed)
        found = outcome(tmp_path / "b.npz")
        is_short_line = isinstance(found, str) and "\n" not in found and len(found) < len(str(tmp_path)) + 200
        assert is_short_line or found == list(range(40))
