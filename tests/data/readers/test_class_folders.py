"""Folders of images."""

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import (
    check_dataset,
    dataset_info,
    load_dataset,
    read_image_folder,
    synthetic_images,
    write_twin,
)
from torchcaps.data.twin import FOLDER_TWIN


@pytest.fixture
def root(tmp_path):
    write_twin("folder", tmp_path / "pets", 12)
    return tmp_path / "pets"


def save(path, shape=(16, 16, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(shape, 100, np.uint8)).save(path)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_folder_gives_back_what_was_written(root, split):
    expected = synthetic_images(FOLDER_TWIN, split, 12)
    expected = expected.subset(expected.labels.argsort(stable=True))
    found = load_dataset(f"folder:{root}", split)
    assert torch.equal(found.images, expected.images)
    assert torch.equal(found.labels, expected.labels)
    assert found.classes == ("a", "b", "c")


def test_a_relative_path_counts_from_the_data_folder(root):
    assert len(load_dataset("folder:pets", "train", root.parent)) == 12


def test_val_serves_as_test(root):
    (root / "test").rename(root / "val")
    assert len(load_dataset(f"folder:{root}", "test")) == 12


def test_images_of_other_sizes_need_a_common_size(root):
    odd = root / "train/b/odd.png"
    save(odd, (8, 20, 3))
    with pytest.raises(UserError, match=r"odd\.png has 20x8 pixels"):
        load_dataset(f"folder:{root}", "train")
    assert load_dataset(f"folder:{root}@10", "train").images.shape == (13, 3, 10, 10)


def test_images_are_greyscale_only_if_all_training_images_are(tmp_path):
    for split in ("train", "test"):
        for name in ("x", "y"):
            save(tmp_path / split / name / "1.png", (4, 4))
    assert load_dataset(f"folder:{tmp_path}", "train").images.shape == (2, 1, 4, 4)
    save(tmp_path / "test/x/colour.png", (4, 4, 3))
    with pytest.raises(UserError, match=r"colour\.png is in colour"):
        load_dataset(f"folder:{tmp_path}", "test")
    save(tmp_path / "train/x/colour.png", (4, 4, 3))
    for split in ("train", "test"):
        assert load_dataset(f"folder:{tmp_path}", split).images.shape == (3, 3, 4, 4)


def test_a_folder_that_is_not_there_is_named_once_for_each_place(tmp_path):
    with pytest.raises(UserError, match=f": {tmp_path}/no is not a folder; expected"):
        load_dataset(f"folder:{tmp_path}/no", "train", tmp_path)
    with pytest.raises(UserError, match=f"neither no nor {tmp_path}/no is a folder"):
        load_dataset("folder:no", "train", tmp_path)
    with pytest.raises(UserError, match="'folder:' names no folder"):
        load_dataset("folder:", "train", tmp_path)


def test_a_broken_image_is_named(root):
    path = root / "train/a/00000.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UserError, match=r"00000\.png cannot be read"):
        load_dataset(f"folder:{root}", "train")
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"00000\.png cannot be read"):
        load_dataset(f"folder:{root}", "train")


def test_a_file_that_is_no_image_is_named_but_hidden_files_are_ignored(root):
    (root / "train/a/.DS_Store").touch()
    (root / "train/.hidden").touch()
    assert len(load_dataset(f"folder:{root}", "train")) == 12
    (root / "train/a/notes.txt").touch()
    with pytest.raises(UserError, match=r"notes\.txt"):
        load_dataset(f"folder:{root}", "train")


def test_sixteen_bit_images_are_refused(root):
    Image.fromarray(np.zeros((16, 16), np.uint16)).save(root / "train/a/deep.png")
    with pytest.raises(UserError, match=r"deep\.png has more than 8 bits"):
        load_dataset(f"folder:{root}", "train")


def test_a_training_class_without_images_is_refused(root):
    (root / "train/d").mkdir()
    (root / "train/d/.DS_Store").touch()
    for read in (dataset_info, check_dataset):
        with pytest.raises(UserError, match=r"train/d is a class without training images"):
            read(f"folder:{root}")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_check_reads_both_splits(root, split):
    assert check_dataset(f"folder:{root}") == []
    save(root / split / "b/odd.png", (8, 20, 3))
    with pytest.raises(UserError, match=r"odd\.png has 20x8 pixels"):
        check_dataset(f"folder:{root}")


def test_a_test_class_that_was_not_trained_is_refused(root):
    save(root / "test/d/1.png")
    with pytest.raises(UserError, match=r"training classes: a, b, c"):
        load_dataset(f"folder:{root}", "test")


def test_missing_folders_are_named(tmp_path, root):
    with pytest.raises(MissingDataError, match="nowhere"):
        load_dataset("folder:nowhere", "train", tmp_path)
    with pytest.raises(MissingDataError, match="no folder train"):
        load_dataset(f"folder:{root / 'train'}", "train")
    (tmp_path / "empty/train").mkdir(parents=True)
    with pytest.raises(UserError, match="at least two classes"):
        read_image_folder(tmp_path / "empty", "train")


def test_a_folder_is_described_by_its_files(root):
    info = dataset_info(f"folder:{root}")
    pixels = load_dataset(f"folder:{root}", "train").images.double() / 255
    assert (info.channels, info.num_train, info.num_test) == (3, 12, 12)
    assert (info.height, info.width) == pixels.shape[2:]  # the size that predict brings other images to
    assert info.mean == pytest.approx(pixels.mean((0, 2, 3)).tolist())
    assert info.std == pytest.approx(pixels.std((0, 2, 3), correction=0).tolist())
    assert len(info.reader(root, "test")) == 12
