"""Checking and fetching files, with a folder in place of the network."""

import hashlib
import shutil
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import DATASETS, check_dataset, get_dataset, load_dataset, write_twin
from torchcaps.data.check import unpacked_files
from torchcaps.data.rendering import TINY_FILE, MeshSet, NamedMesh, cube, save_meshes
from torchcaps.data.rendering.datasets import TINY_CLASSES

pooch = pytest.importorskip("pooch", reason="downloads need pooch")


def with_checksum(file, source):
    content = (source / file.path).read_bytes()
    return replace(file, size=len(content), sha256=hashlib.sha256(content).hexdigest(), md5=None)


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """A folder that plays the publishers of MNIST and CIFAR-10; requests land in `requests`."""
    source = tmp_path / "publisher"
    write_twin("mnist", source, 10)
    write_twin("cifar10", source, 10)
    with tarfile.open(source / "cifar-10-python.tar.gz", "w:gz") as tar:
        tar.add(source / "cifar-10-batches-py", "cifar-10-batches-py")
    for name in ("mnist", "cifar10"):
        files = tuple(
            replace(
                with_checksum(file, source),
                contains=tuple(with_checksum(part, source) for part in file.contains),
            )
            for file in DATASETS[name].files
        )
        monkeypatch.setitem(DATASETS._entries, name, replace(DATASETS[name], files=files))
    requests = []

    def choose_downloader(url, *_, **__):
        def copy(url, target, _pooch):
            requests.append(Path(url).name)
            found = next(source.rglob(Path(url).name), None)
            if found is None:
                raise OSError("no connection")
            shutil.copy(found, target)

        return copy

    monkeypatch.setattr("pooch.core.choose_downloader", choose_downloader)
    source_and_requests = (source, requests)
    return source_and_requests


def visible(folder):
    """What lies in a folder, the file by which processes take turns aside."""
    return [path.name for path in folder.iterdir() if path.name != ".turn.lock"]


def test_a_dataset_is_fetched_once_and_can_be_read(publisher, tmp_path):
    _, requests = publisher
    paths = get_dataset("mnist", tmp_path / "data")
    assert len(paths) == len(requests) == 4
    assert all(path.is_file() for path in paths)
    assert len(load_dataset("mnist", "train", tmp_path / "data")) == 10
    get_dataset("mnist", tmp_path / "data")
    assert len(requests) == 4


def test_an_archive_is_unpacked_and_removed(publisher, tmp_path):
    _, requests = publisher
    paths = get_dataset("cifar10", tmp_path / "data")
    assert requests == ["cifar-10-python.tar.gz"]
    assert [path.name for path in paths][-1] == "test_batch"
    assert len(load_dataset("cifar10", "train", tmp_path / "data")) == 10
    assert visible(tmp_path / "data") == ["cifar-10-batches-py"]
    get_dataset("cifar10", tmp_path / "data")
    assert len(requests) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="nobody waits on Windows")
def test_of_two_at_once_one_fetches_and_the_other_waits(publisher, tmp_path):
    _, requests = publisher
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: get_dataset("cifar10", tmp_path / "mine"), range(2))
    assert first == second
    assert requests == ["cifar-10-python.tar.gz"]


def test_an_archive_of_single_photographs_is_fetched_until_they_are_all_there(
    publisher, tmp_path, monkeypatch
):
    source, requests = publisher
    write_twin("imagenette", source, 10)
    with tarfile.open(source / "imagenette2-160.tgz", "w:gz") as tar:
        tar.add(source / "imagenette2-64", "imagenette2-160")
    (archive,) = DATASETS["imagenette"].files
    folders = tuple(replace(part, num_images=10) for part in archive.contains)
    files = (replace(with_checksum(archive, source), contains=folders),)
    monkeypatch.setitem(DATASETS._entries, "imagenette", replace(DATASETS["imagenette"], files=files))
    train, test = get_dataset("imagenette", tmp_path / "data")
    assert (train.name, test.name) == ("train", "val")
    assert all(finding.is_ok for finding in check_dataset("imagenette", tmp_path / "data"))
    get_dataset("imagenette", tmp_path / "data")
    assert len(requests) == 1
    next(test.rglob("*.png")).unlink()
    get_dataset("imagenette", tmp_path / "data")
    assert len(requests) == 2
    assert all(finding.is_ok for finding in check_dataset("imagenette", tmp_path / "data"))


def test_a_damaged_file_is_fetched_again(publisher, tmp_path):
    _, requests = publisher
    (damaged, *_) = get_dataset("mnist", tmp_path / "data")
    damaged.write_bytes(b"broken")
    get_dataset("mnist", tmp_path / "data")
    assert requests[4:] == [damaged.name]
    assert all(finding.is_ok for finding in check_dataset("mnist", tmp_path / "data"))


def test_a_download_with_a_wrong_checksum_is_refused_and_leaves_nothing(publisher, tmp_path):
    source, _ = publisher
    (source / "MNIST/raw/train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte\.gz could not be fetched"):
        get_dataset("mnist", tmp_path / "data")
    assert not visible(tmp_path / "data" / "MNIST" / "raw")


def test_a_failed_connection_is_a_user_error(publisher, tmp_path):
    source, _ = publisher
    shutil.rmtree(source / "MNIST")
    with pytest.raises(UserError, match="no connection"):
        get_dataset("mnist", tmp_path / "data")


def test_without_pooch_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(UserError, match=r'pip install "torchcaps\[download\]"'):
        get_dataset("mnist", tmp_path)


def test_datasets_without_files_need_no_download_and_pass_the_check(tmp_path):
    assert get_dataset("synthetic_mnist", tmp_path) == []
    assert check_dataset("synthetic_mnist", tmp_path) == []


def test_a_file_without_a_published_checksum_is_not_held_against_one(tmp_path):
    objects = tuple(NamedMesh(name, label, cube()) for label, name in enumerate(TINY_CLASSES))
    save_meshes(tmp_path / TINY_FILE, MeshSet(TINY_CLASSES, objects))
    (finding,) = check_dataset("tiny_meshes", tmp_path)
    assert finding.is_ok
    assert finding.is_checksum_ok is None
    assert get_dataset("tiny_meshes", tmp_path) == [finding.path]


@pytest.mark.parametrize(
    ("name", "words"),
    [("tiny_meshes", "make them with"), ("affnist", "has no affNIST"), ("eth80", "no ETH-80")],
)
def test_what_nobody_publishes_is_answered_with_where_it_comes_from(name, words, tmp_path):
    with pytest.raises(MissingDataError, match=words):
        get_dataset(name, tmp_path)


def test_a_check_of_good_files_finds_nothing_wrong(publisher):
    source, _ = publisher
    for name, count in (("mnist", 4), ("cifar10", 6)):
        findings = check_dataset(name, source)
        assert len(findings) == count
        assert all(finding.is_ok and finding.is_readable and finding.is_checksum_ok for finding in findings)


def test_a_check_tells_missing_damaged_and_repacked_files_apart(publisher):
    source, _ = publisher
    images, labels, test_images, _ = (source / file.path for file in DATASETS["mnist"].files)
    images.write_bytes(images.read_bytes()[:50])
    test_images.unlink()
    found = {finding.path: finding for finding in check_dataset("mnist", source)}
    assert (found[images].is_size_ok, found[images].is_checksum_ok, found[images].is_readable) == (
        False,
        False,
        False,
    )
    assert "gzip" in found[images].note
    assert found[labels].is_ok
    assert found[labels].is_readable is None
    assert not found[test_images].is_present
    write_twin("mnist", source, 12)
    repacked = check_dataset("mnist", source)[0]
    assert repacked.is_readable
    assert not repacked.is_ok
    assert "the published file has" in repacked.note


def test_an_unpacked_file_is_read_but_not_compared(publisher):
    import gzip

    source, _ = publisher
    packed = source / DATASETS["mnist"].files[0].path
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    finding = check_dataset("mnist", source)[0]
    assert finding.is_ok
    assert finding.is_checksum_ok is None
    assert "unpacked" in finding.note


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "svhn", "smallnorb", "imagenette"])
def test_every_published_file_has_an_address_a_size_and_a_checksum(name):
    for file in DATASETS[name].files:
        # the publisher of SVHN has no https
        assert file.url.startswith("https://" if name != "svhn" else "http://ufldl.stanford.edu/")
        assert file.url.endswith(Path(file.path).name)
        assert len(file.sha256) == 64
        assert len(file.md5) == 32
        assert file.size > 0
    for file in unpacked_files(DATASETS[name]):
        assert file.split in ("train", "test")
        assert len(file.md5 or "") == (0 if file.num_images else 32)
