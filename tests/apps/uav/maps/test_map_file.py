import base64
import errno
import json
import os
import zlib

import numpy as np
import pytest
from typer.testing import CliRunner

from torchcaps.apps.uav.filter import learn_codebook
from torchcaps.apps.uav.maps import MapInfo, open_map, verify_map
from torchcaps.apps.uav.maps.map_file import write_map
from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.storage import DiskError

from apps.uav.filter.flights import made_map


def write(path, storage="int8", plane_of=None, known=None):
    grid, vectors, _ = made_map(columns=9, rows=8, headings=6)
    book = learn_codebook(vectors.reshape(-1, 16), storage, bytes_each=4)
    info = MapInfo(grid, "EPSG:32614", 100.0, "network", ("2019.tif", "2020.tif"))
    write_map(path, info, book, 16, plane_of or vectors.__getitem__, known=known)
    return info, vectors, book


@pytest.mark.parametrize("storage", ["float32", "float16", "int8", "product"])
def test_a_map_is_read_as_it_was_written(storage, tmp_path):
    info, vectors, book = write(tmp_path / "a.tcmap", storage)
    opened = open_map(tmp_path / "a.tcmap")
    verify_map(opened)
    assert opened.info == info
    assert opened.descriptors.book.storage == storage
    for heading, plane in enumerate(vectors):
        assert np.array_equal(opened.descriptors.values[heading], book.encode(plane))
    error = np.abs(book.decode(opened.descriptors.values[2]) - vectors[2]).max()
    assert error < {"float32": 1e-7, "float16": 1e-3, "int8": 1e-2, "product": 0.8}[storage]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tcmap"]


def test_a_map_that_was_cut_off_goes_on_where_it_ended(tmp_path):
    _, vectors, _ = write(tmp_path / "whole.tcmap")
    seen = []

    def cut(heading):
        seen.append(heading)
        if seen == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return vectors[heading]

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.tcmap", plane_of=cut)
    assert not (tmp_path / "a.tcmap").exists()
    write(tmp_path / "a.tcmap", plane_of=cut)
    assert seen == [0, 1, 2, 3, 3, 4, 5]
    assert (tmp_path / "a.tcmap").read_bytes() == (tmp_path / "whole.tcmap").read_bytes()


def test_another_digit_in_the_description_is_noticed(tmp_path):
    path = tmp_path / "a.tcmap"
    write(path)
    content = path.read_bytes()
    place = content.index(b'"south": ') + len(b'"south": ')
    other = b"8" if content[place : place + 1] != b"8" else b"7"
    path.write_bytes(content[:place] + other + content[place + 1 :])
    with pytest.raises(UserError, match=r"description of .* is damaged"):
        open_map(path)


def test_damaged_notes_of_a_map_that_was_cut_off_are_not_used(tmp_path):
    def cut(heading):
        raise KeyboardInterrupt

    _, vectors, _ = write(tmp_path / "whole.tcmap")
    with pytest.raises(KeyboardInterrupt):
        write(
            tmp_path / "a.tcmap", plane_of=lambda heading: vectors[heading] if heading < 2 else cut(heading)
        )
    notes = tmp_path / "a.tcmap.progress"
    for planes in (5, None, "xy"):
        notes.write_text(json.dumps({**json.loads(notes.read_text()), "planes": planes}))
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "a.tcmap", plane_of=cut)


@pytest.mark.parametrize(("full_at", "name"), [(3, r"a\.tcmap\.partial"), (13, r"a\.tcmap\.whole")])
def test_a_full_disk_names_the_file_and_the_map_goes_on_later(full_at, name, tmp_path, monkeypatch):
    calls = []  # two for each of six headings: the plane, and how far the map is

    def full(number):
        calls.append(number)
        if len(calls) == full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match=f"cannot write .*{name}: No space left on device"):
        write(tmp_path / "a.tcmap")
    write(tmp_path / "a.tcmap")
    verify_map(open_map(tmp_path / "a.tcmap"))


def test_planes_of_another_map_are_not_gone_on_with(tmp_path):
    _, vectors, _ = write(tmp_path / "whole.tcmap", "float16")

    def cut(heading):
        if heading:
            raise KeyboardInterrupt
        return vectors[heading]

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.tcmap", "int8", plane_of=cut)
    write(tmp_path / "a.tcmap", "float16")
    assert (tmp_path / "a.tcmap").read_bytes() == (tmp_path / "whole.tcmap").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "copy it anew"),
        (lambda data: data + b"x", "copy it anew"),
        (lambda data: b"PK\x03\x04" + data[4:], "no compiled map"),
        (lambda data: data[:100] + b"\x00" + data[101:], "description of .* is damaged"),
        (lambda data: data[:12], "description of .* is damaged"),
        (lambda data: b"", "no compiled map"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(damage, message, tmp_path):
    path = tmp_path / "a.tcmap"
    write(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=message):
        open_map(path)


@pytest.fixture
def changed_map(tmp_path):
    """A map in which one bit is another one."""
    path = tmp_path / "a.tcmap"
    write(path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return path


def test_a_changed_byte_is_found_by_its_checksum(changed_map):
    with pytest.raises(UserError, match="damaged at heading 5"):
        verify_map(open_map(changed_map))


@pytest.mark.parametrize("command", [("localize", "flight.csv", "images", "--out", "found"), ("stream",)])
def test_no_flight_is_followed_on_a_changed_map(changed_map, command):
    name, *files = command
    (changed_map.parent / "recipe.json").write_text("{}")
    words = ["uav", name, str(changed_map), *files, "--run", str(changed_map.parent)]
    with pytest.raises(UserError, match="damaged at heading 5"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_missing_map_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(UserError, match="uav compile-map"):
        open_map(tmp_path / "none.tcmap")


def test_a_description_is_json_that_other_programs_read(tmp_path):
    write(tmp_path / "a.tcmap")
    data = (tmp_path / "a.tcmap").read_bytes()
    length = int.from_bytes(data[8:16], "little")
    assert json.loads(data[16 : 16 + length])["crs"] == "EPSG:32614"
    assert (16 + length) % 4096 == 0


def rewrite(path, **changes):
    """Give a map another description."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[8:16], "little")
    head = {**json.loads(whole[16 : 16 + length]), **changes}
    text = json.dumps({key: value for key, value in head.items() if value != "gone"}).encode()
    path.write_bytes(whole[:8] + len(text).to_bytes(8, "little") + text + whole[16 + length :])


@pytest.mark.parametrize(
    "changes",
    [
        {"scales": [1.0]},
        {"scales": None},
        {"scales": [float("nan")] * 16},
        {"scales": "x"},
        {"storage": "product"},
        {"centres": [[[0.0]]]},
        {"parts": "x"},
        {"parts": -16},
        {"crs": "gone"},
        {"crs": 5},
        {"metres": float("inf")},
        {"sources": 5},
        {"grid": {"west": None, "south": 0.0, "cell": 1.0, "columns": 9, "rows": 8, "headings": 6}},
    ],
    ids=str,
)
def test_a_description_whose_parts_do_not_fit_is_refused(changes, tmp_path):
    write(tmp_path / "a.tcmap")
    rewrite(tmp_path / "a.tcmap", **changes)
    with pytest.raises(UserError, match=r"the description of .*a\.tcmap is damaged"):
        open_map(tmp_path / "a.tcmap")


def test_a_torn_part_is_not_gone_on_with(tmp_path):
    _, vectors, _ = write(tmp_path / "whole.tcmap")

    def cut(heading):
        if heading == 4:
            raise KeyboardInterrupt
        return vectors[heading]

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.tcmap", plane_of=cut)
    partial = tmp_path / "a.tcmap.partial"
    partial.write_bytes(partial.read_bytes()[:-1])
    write(tmp_path / "a.tcmap")
    assert (tmp_path / "a.tcmap").read_bytes() == (tmp_path / "whole.tcmap").read_bytes()


def test_known_cells_are_read_as_they_were_written(tmp_path):
    known = np.random.default_rng(0).random((8, 9)) < 0.7
    write(tmp_path / "a.tcmap", known=known)
    opened = open_map(tmp_path / "a.tcmap")
    assert np.array_equal(opened.descriptors.known, known)
    assert opened.unknown_share == pytest.approx(1 - known.mean())


def test_a_map_of_before_known_cells_were_stored_knows_all(tmp_path):
    write(tmp_path / "a.tcmap")
    assert b'"known": null' in (tmp_path / "a.tcmap").read_bytes()
    for name in ("known", "checksum"):
        rename_key(tmp_path / "a.tcmap", name)
    assert open_map(tmp_path / "a.tcmap").descriptors.known is None
    assert open_map(tmp_path / "a.tcmap").unknown_share == 0


@pytest.mark.parametrize("wrong", ["AAAA", "?", base64.b64encode(zlib.compress(b"1")).decode(), 3])
def test_known_cells_that_are_damaged_are_refused(wrong, tmp_path):
    write(tmp_path / "a.tcmap")
    content = (tmp_path / "a.tcmap").read_bytes()
    text = f'"known": {json.dumps(wrong)}'.encode()
    damaged = content.replace(b'"known": null', text, 1)
    grown = len(text) - len(b'"known": null')
    length = int.from_bytes(content[8:16], "little") + grown
    (tmp_path / "a.tcmap").write_bytes(damaged[:8] + length.to_bytes(8, "little") + damaged[16:])
    rename_key(tmp_path / "a.tcmap", "checksum")  # without it, the cells themselves are checked
    with pytest.raises(UserError, match="is damaged: copy it anew"):
        open_map(tmp_path / "a.tcmap")


def rename_key(path, name):
    path.write_bytes(path.read_bytes().replace(f'"{name}"'.encode(), f'"{name[::-1]}"'.encode(), 1))
