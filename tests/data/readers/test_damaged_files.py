"""A damaged file gives an error that names it and says what to do."""

import gzip
import io
import pickle
import pickletools
import tracemalloc

import numpy as np
import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import DamagedFileError, load_dataset, write_twin
from torchcaps.data.readers import files
from torchcaps.data.readers.restricted_pickle import PickledArray, RefusedPickleError, load_restricted
from torchcaps.data.readers.smallnorb import STEMS, read_smallnorb_info


@pytest.fixture
def mnist(tmp_path):
    write_twin("mnist", tmp_path, 12)
    return tmp_path


@pytest.fixture
def cifar10(tmp_path):
    write_twin("cifar10", tmp_path, 12)
    return tmp_path


@pytest.fixture
def smallnorb(tmp_path):
    write_twin("smallnorb", tmp_path, 10)
    return tmp_path


def assert_names(path, name, data_dir, split="train"):
    with pytest.raises(DamagedFileError, match=f"torchcaps data get {name}") as caught:
        load_dataset(name, split, data_dir)
    assert str(path) in str(caught.value)
    assert caught.value.path == path
    return str(caught.value)


def test_a_truncated_gzip_file_is_named_with_its_size(mnist):
    path = mnist / "MNIST/raw/train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:100])
    assert "100 bytes" in assert_names(path, "mnist", mnist)


def test_a_gzip_file_is_not_unpacked_without_end(mnist, monkeypatch):
    path = mnist / "MNIST/raw/train-images-idx3-ubyte.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    monkeypatch.setattr(files, "MOST_UNPACKED", 8 << 20)
    tracemalloc.start()
    try:
        assert_names(path, "mnist", mnist)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_not_gzip_is_named(mnist):
    path = mnist / "MNIST/raw/train-labels-idx1-ubyte.gz"
    path.write_bytes(b"<html>not found</html>")
    assert_names(path, "mnist", mnist)


@pytest.mark.parametrize("content", [b"", b"\0\0\x08", b"\0\0\x09\x03" + bytes(12)])
def test_a_wrong_beginning_is_shown(content, mnist):
    path = mnist / "MNIST/raw/train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(content))
    assert "00 00 08 03" in assert_names(path, "mnist", mnist)


@pytest.mark.parametrize("change", [-1, 1])
def test_too_few_or_too_many_bytes_are_counted(change, mnist):
    path = mnist / "MNIST/raw/train-labels-idx1-ubyte.gz"
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[:change] if change < 0 else content + b"\0"))
    message = assert_names(path, "mnist", mnist)
    assert str(len(content)) in message
    assert str(len(content) + change) in message


def test_labels_that_do_not_fit_the_images_are_refused(mnist):
    path = mnist / "MNIST/raw/train-labels-idx1-ubyte.gz"
    header = bytes([0, 0, 8, 1, 0, 0, 0])
    path.write_bytes(gzip.compress(header + bytes([3, 1, 2, 3])))
    assert "12 images" in assert_names(path, "mnist", mnist)
    path.write_bytes(gzip.compress(header + bytes([12]) + bytes([99] * 12)))
    assert "99..99" in assert_names(path, "mnist", mnist)


def test_a_smallnorb_file_with_a_foreign_type_or_length_is_refused(smallnorb):
    path = smallnorb / "smallnorb" / f"{STEMS['train']}-dat.mat.gz"
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(b"\x01\x02\x03\x04" + content[4:]))
    assert "0x1e3d4c55" in assert_names(path, "smallnorb", smallnorb)
    path.write_bytes(gzip.compress(content[:-5]))
    assert str(len(content)) in assert_names(path, "smallnorb", smallnorb)


def test_smallnorb_files_in_each_others_place_are_refused(smallnorb):
    folder = smallnorb / "smallnorb"
    parts = {part: folder / f"{STEMS['train']}-{part}.mat.gz" for part in ("dat", "cat", "info")}
    parts["dat"].write_bytes(parts["info"].read_bytes())
    assert_names(parts["dat"], "smallnorb", smallnorb)
    parts["info"].write_bytes(parts["cat"].read_bytes())
    with pytest.raises(DamagedFileError, match="int32"):
        read_smallnorb_info(smallnorb, "train")


def test_a_damaged_matlab_file_is_named_with_both_sizes(tmp_path):
    write_twin("svhn", tmp_path, 10)
    path = tmp_path / "svhn/train_32x32.mat"
    path.write_bytes(path.read_bytes()[:-50])
    message = assert_names(path, "svhn", tmp_path)
    assert "182040794" in message
    path.write_bytes(b"no matlab here")
    assert "found 14" in assert_names(path, "svhn", tmp_path)


def test_a_matlab_file_is_not_unpacked_without_end(tmp_path, monkeypatch):
    from scipy.io import savemat

    (tmp_path / "svhn").mkdir()
    path = tmp_path / "svhn/train_32x32.mat"
    savemat(path, {"X": np.zeros(32 << 20, np.uint8), "y": np.ones(3)}, do_compression=True)
    monkeypatch.setattr(files, "MOST_UNPACKED", 4 << 20)
    tracemalloc.start()
    try:
        assert "unpacks to more than 4 MiB" in assert_names(path, "svhn", tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("is_compressed", [False, True])
def test_matlab_files_are_read_packed_and_unpacked(tmp_path, is_compressed):
    from scipy.io import savemat

    (tmp_path / "svhn").mkdir()
    pixels = np.arange(32 * 32 * 3 * 2, dtype=np.uint8).reshape(32, 32, 3, 2)
    content = {"X": pixels, "y": np.array([[10], [2]])}
    savemat(tmp_path / "svhn/train_32x32.mat", content, do_compression=is_compressed)
    found = load_dataset("svhn", "train", tmp_path)
    assert found.labels.tolist() == [0, 2]
    assert np.array_equal(found.images.numpy(), pixels.transpose(3, 2, 0, 1))


@pytest.mark.parametrize(
    ("pixels", "digits"),
    [
        (np.zeros((32, 32, 3, 2), np.uint8), np.array([[1], [2], [3]])),
        (np.zeros((32, 32, 3, 2), np.uint8), np.array([[0], [11]])),
        (np.zeros((32, 32, 3, 2)), np.array([[1], [2]])),
        (np.zeros((32, 32, 3, 2), np.uint8), np.array([[1.5], [2]])),
        (np.zeros((32, 32, 3, 2), np.uint8), np.array([[np.nan], [2]])),
        (np.zeros((32, 32, 3, 2), np.uint8), np.array([["one"], [2]], object)),
    ],
    ids=["counts differ", "labels out of range", "not bytes", "broken label", "no label", "cells"],
)
def test_a_matlab_file_with_other_contents_is_refused(pixels, digits, tmp_path):
    from scipy.io import savemat

    (tmp_path / "svhn").mkdir()
    savemat(tmp_path / "svhn/train_32x32.mat", {"X": pixels, "y": digits})
    assert_names(tmp_path / "svhn/train_32x32.mat", "svhn", tmp_path)


class _Attack:
    def __reduce__(self):
        return exec, ("import pathlib; pathlib.Path('pwned').write_text('ran')",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_inside_a_batch_is_refused_and_does_not_run(protocol, cifar10, monkeypatch):
    monkeypatch.chdir(cifar10)
    path = cifar10 / "cifar-10-batches-py/data_batch_2"
    path.write_bytes(pickle.dumps({b"data": _Attack(), b"labels": []}, protocol=protocol))
    assert "exec" in assert_names(path, "cifar10", cifar10)
    assert not (cifar10 / "pwned").exists()


@pytest.mark.parametrize(
    "name", ["os system", "builtins getattr", "numpy load", "numpy.core.multiarray scalar"]
)
def test_a_pickle_may_only_name_what_a_byte_array_needs(name):
    module, attribute = name.split()
    with pytest.raises(RefusedPickleError, match=attribute):
        load_restricted(f"c{module}\n{attribute}\n.".encode())


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02c_codecs\nencode\nN}(X\x04\x00\x00\x00callK\x01u\x86b.",
        b"\x80\x02cnumpy\nndarray\n}X\x05\x00\x00\x00stateK\x01sb.",
        b"\x80\x02c__builtin__\nbytes\nK\x05\x85R.",
    ],
    ids=["changes a function", "changes a class", "asks for memory"],
)
def test_a_pickle_cannot_misuse_what_it_may_name(content):
    with pytest.raises(RefusedPickleError):
        load_restricted(content)
    assert load_restricted(pickle.dumps({b"key": b"", b"other": b"\xff"}, protocol=2)) == {
        b"key": b"",
        b"other": b"\xff",
    }


def test_a_truncated_batch_is_named_with_its_size(cifar10):
    path = cifar10 / "cifar-10-batches-py/data_batch_1"
    path.write_bytes(path.read_bytes()[:5000])
    assert "5000 bytes" in assert_names(path, "cifar10", cifar10)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        {b"labels": [1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]},
        {b"data": np.zeros((1, 3071), np.uint8), b"labels": [1]},
        {b"data": np.zeros((1, 3072), np.float32), b"labels": [1]},
        {b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]},
        {b"data": np.zeros((1, 3072), np.uint8), b"labels": ["1"]},
    ],
    ids=["list", "no data", "counts differ", "wrong width", "not bytes", "label 10", "text label"],
)
def test_a_batch_with_other_contents_is_refused(batch, cifar10):
    path = cifar10 / "cifar-10-batches-py/test_batch"
    path.write_bytes(pickle.dumps(batch, protocol=2))
    assert_names(path, "cifar10", cifar10, split="test")


def python2_batch(pixels: bytes, labels: list[int]) -> bytes:
    """A batch as Python 2 and an old numpy wrote it: byte strings, and numpy.core in place of numpy._core."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    shape = b"K" + bytes([len(labels)]) + b"M" + (3072).to_bytes(2, "little") + b"\x86"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
        b"(K\x01" + shape + b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
        b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89T" + len(pixels).to_bytes(4, "little") + pixels + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."


def test_batches_written_by_python_2_are_read(cifar10):
    pixels = bytes(range(256)) * 24
    content = python2_batch(pixels, [3, 8])
    pickletools.dis(content, io.StringIO())  # it is a well-formed pickle
    (cifar10 / "cifar-10-batches-py/test_batch").write_bytes(content)
    data = load_dataset("cifar10", "test", cifar10)
    assert data.labels.tolist() == [3, 8]
    assert torch.equal(data.images.flatten(), torch.tensor(list(pixels), dtype=torch.uint8))


def test_a_pickled_array_of_a_wrong_shape_is_refused():
    content = python2_batch(bytes(3072), [1, 2])
    array = load_restricted(content)[b"data"]
    assert isinstance(array, PickledArray)
    with pytest.raises(RefusedPickleError, match="shape"):
        array.array()


def test_errors_about_files_are_user_errors():
    assert issubclass(DamagedFileError, UserError)
