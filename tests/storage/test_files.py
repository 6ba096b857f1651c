import errno
import hashlib
import os
import stat
import time
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import save_file

from torchcaps.core import UserError
from torchcaps.storage import (
    DiskError,
    checksum_of,
    load_weights,
    read_json,
    read_json_lines,
    read_text,
    save_weights,
    write_atomically,
    write_json,
    write_json_lines,
    write_png,
    write_text,
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_every_file_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        save_weights(tmp_path / "w.safetensors", {"a": torch.zeros(1)}, {})
        write_json(tmp_path / "a.json", {})
    finally:
        os.umask(before)
    assert mode(tmp_path / "w.safetensors") == mode(tmp_path / "a.json") == 0o644


def test_drafts_of_killed_processes_are_removed_once_they_are_old(tmp_path):
    old, young = tmp_path / ".a.json.0badcafe.draft", tmp_path / ".a.json.12345678.draft"
    for draft in (old, young):
        draft.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    os.utime(young, (time.time() - 1800,) * 2)  # a large file may take that long
    write_json(tmp_path / "a.json", {"b": 1})
    assert not old.exists()
    assert young.exists()
    assert read_json(tmp_path / "a.json") == {"b": 1}


def test_a_folder_is_looked_through_for_drafts_once_however_many_files_are_written(tmp_path, monkeypatch):
    looked, glob = [], Path.glob
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: looked.append(folder) or glob(folder, pattern))
    for number in range(5):
        write_text(tmp_path / f"{number}.txt", "a")
    assert looked == [tmp_path]


def test_mappings_are_kept_one_on_each_line(tmp_path):
    rows = [{"epoch": 0, "loss": 0.1}, {"epoch": 1, "findings": ["a\nb"]}]
    write_json_lines(tmp_path / "a.jsonl", rows)
    assert read_json_lines(tmp_path / "a.jsonl") == rows
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 2


def test_a_file_is_on_the_disk_before_it_is_in_place(tmp_path, monkeypatch):
    path, sizes = tmp_path / "a.txt", []

    def sync(number):
        assert not path.exists()
        sizes.append(os.fstat(number).st_size)

    monkeypatch.setattr(os, "fsync", sync)
    write_text(path, "whole")
    assert sizes == [path.stat().st_size] == [5]


def test_a_picture_is_a_png_whatever_the_name_of_its_file(tmp_path):
    write_png(tmp_path / "new" / "picture.jpg", Image.new("L", (3, 2), 7))
    with Image.open(tmp_path / "new" / "picture.jpg") as found:
        assert (found.format, found.size, found.getpixel((2, 1))) == ("PNG", (3, 2), 7)


def test_the_checksum_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert checksum_of(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()


def test_text_is_utf8_whatever_the_locale(tmp_path):
    write_text(tmp_path / "a.txt", "é 漢")
    assert (tmp_path / "a.txt").read_bytes() == "é 漢".encode()


def test_text_has_no_mark_before_it_and_another_encoding_is_named(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("cat\n", encoding="utf-8-sig")
    assert read_text(path) == "cat\n"
    path.write_text("Käfer\n", encoding="latin-1")
    with pytest.raises(UserError, match=r"classes\.txt is no text in UTF-8 .*; save it as UTF-8"):
        read_text(path)


def test_json_may_begin_with_the_mark_of_an_editor(tmp_path):
    (tmp_path / "places.json").write_text('{"views": 4}\r\n', encoding="utf-8-sig")
    assert read_json(tmp_path / "places.json") == {"views": 4}


def test_damaged_json_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "deep"])
def test_what_json_does_not_have_is_refused_and_the_old_file_is_kept(tmp_path, value):
    write_json(tmp_path / "a.json", {"b": 1})
    if value == "deep":
        for _ in range(5000):
            value = [value]
    with pytest.raises(UserError, match=r"cannot write .*a\.json: .*; what was there before is kept"):
        write_json(tmp_path / "a.json", {"b": value})
    assert read_json(tmp_path / "a.json") == {"b": 1}


@pytest.mark.parametrize("header", ["[" * 100_000, "9" * 5000, "{"], ids=["deep", "digits", "torn"])
def test_weights_with_a_strange_header_are_named(tmp_path, header):
    save_file({"a": torch.zeros(1)}, tmp_path / "w.safetensors", metadata={"epoch": header})
    with pytest.raises(UserError, match=r"w\.safetensors is damaged"):
        load_weights(tmp_path / "w.safetensors")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DiskError),
        (SafetensorError("I/O error: No space left on device (os error 28)"), DiskError),
        (OSError(errno.ENAMETOOLONG, "File name too long"), UserError),
        (SafetensorError("no such type"), UserError),
    ],
    ids=str,
)
def test_a_full_disk_is_told_from_a_file_that_cannot_be_written(error, kind, tmp_path):
    def fill(draft):
        draft.write_text("half")
        raise error

    write_text(tmp_path / "a.txt", "before")
    with pytest.raises(UserError, match="what was there before is kept") as caught:
        write_atomically(tmp_path / "a.txt", fill)
    assert type(caught.value) is kind
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "before"}


@pytest.mark.parametrize("name", ["", "/", "..", "pages"])
def test_a_folder_is_not_written_as_a_file(name, tmp_path, monkeypatch):
    (tmp_path / "pages").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"cannot write .*: .*; what was there before is kept"):
        write_text(Path(name), "words")
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*(exists|[Nn]ot a directory)"):
        write_json(tmp_path / "file" / "result.json", {})
