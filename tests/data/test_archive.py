"""Unpacking archives that mean harm."""

import io
import tarfile

import pytest

from torchcaps.core import UserError
from torchcaps.data.archive import extract_tar


def make_tar(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for name, settings in members:
            info = tarfile.TarInfo(name)
            content = settings.pop("content", b"hello")
            for key, value in settings.items():
                setattr(info, key, value)
            info.size = len(content) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content))
    return path


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_plain_files_are_unpacked(tmp_path):
    archive = make_tar(
        tmp_path / "good.tar.gz",
        ("batch", {"type": tarfile.DIRTYPE}),
        ("batch/one", {"content": b"1", "mode": 0o777}),
        ("./batch/deep/two", {"content": b"2"}),
    )
    paths = extract_tar(archive, tmp_path / "out")
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    assert files_below(tmp_path / "out") == ["batch", "batch/deep", "batch/deep/two", "batch/one"]
    assert not paths[0].stat().st_mode & 0o111


def test_an_existing_file_is_replaced_and_others_stay(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").write_text("old")
    (tmp_path / "out/b").write_text("mine")
    extract_tar(make_tar(tmp_path / "new.tar.gz", ("a", {})), tmp_path / "out")
    assert (tmp_path / "out/a").read_text() == "hello"
    assert (tmp_path / "out/b").read_text() == "mine"


def test_of_members_with_one_name_the_last_counts(tmp_path):
    archive = make_tar(tmp_path / "twice.tar.gz", ("a", {}), ("b", {}), ("./a", {"content": b"new"}))
    paths = extract_tar(archive, tmp_path / "out")
    assert [path.read_bytes() for path in paths] == [b"new", b"hello"]


def test_a_folder_in_the_place_of_a_file_is_an_error_and_stays(tmp_path):
    (tmp_path / "out/a").mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be unpacked"):
        extract_tar(make_tar(tmp_path / "new.tar.gz", ("a", {})), tmp_path / "out")
    assert files_below(tmp_path / "out") == ["a"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("../escaped", {}),
        ("inside/../../escaped", {}),
        ("..\\escaped", {}),
        ("/tmp/escaped", {}),
        ("C:\\escaped", {}),
        ("link", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("link", {"type": tarfile.LNKTYPE, "linkname": "good"}),
        ("device", {"type": tarfile.CHRTYPE}),
        ("pipe", {"type": tarfile.FIFOTYPE}),
    ],
)
def test_a_member_that_could_write_elsewhere_is_refused_and_nothing_is_unpacked(name, settings, tmp_path):
    archive = make_tar(tmp_path / "bad.tar.gz", ("good", {}), (name, dict(settings)))
    with pytest.raises(UserError, match=r"bad\.tar\.gz has a member"):
        extract_tar(archive, tmp_path / "deep/out")
    assert files_below(tmp_path) == ["bad.tar.gz", "deep", "deep/out"]


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path):
    archive = make_tar(tmp_path / "bomb.tar.gz", ("zeros", {"content": bytes(10_000)}))
    with pytest.raises(UserError, match="more than 5000 bytes"):
        extract_tar(archive, tmp_path / "out", max_bytes=5000)
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize("keep", [0, 40, 90])
def test_a_damaged_archive_leaves_nothing_behind(keep, tmp_path):
    archive = make_tar(tmp_path / "cut.tar.gz", *((f"file{number}", {}) for number in range(20)))
    archive.write_bytes(archive.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"cut\.tar\.gz cannot be unpacked"):
        extract_tar(archive, tmp_path / "out")
    assert files_below(tmp_path / "out") == []
