"""What a check finds in a folder of images that can all be read."""

import shutil

import pytest
from PIL import Image

from torchcaps.data import check_folder, write_twin


@pytest.fixture
def root(tmp_path):
    write_twin("folder", tmp_path / "pets", 12)
    return tmp_path / "pets"


def test_a_folder_with_nothing_to_tell_is_counted(root):
    found = check_folder(f"folder:{root}")
    assert found.images == {"training": 12, "test": 12}
    assert not any((found.skipped, found.outside, found.copies))


def test_images_beside_the_folders_of_the_splits_are_found(root):
    (root / "unlabelled/.thumbnails").mkdir(parents=True)
    names = ("loose.png", "unlabelled/1.jpg", "unlabelled/.thumbnails/1.jpg")
    for name in names:
        Image.new("L", (4, 4)).save(root / name)
    assert check_folder(f"folder:{root}").outside == [root / name for name in names[:2]]


@pytest.mark.parametrize("is_split", [True, False])
def test_test_images_that_trained_under_another_name_are_found(root, is_split):
    root = root if is_split else root / "train"  # class folders alone, of which a fifth tests
    place = root / "train" if is_split else root
    images = sorted((root / "test" if is_split else root).rglob("*.png"))
    for number, image in enumerate(images[:4]):
        shutil.copy(image, place / "b" / f"copied{number}.png")
    copies = check_folder(f"folder:{root}").copies
    assert copies
    assert all(path.read_bytes() == copied.read_bytes() for path, copied in copies.items())
    if is_split:
        assert list(copies) == images[:4]


def test_a_list_of_names_beside_class_folders_does_not_make_them_masks(root):
    (root / "train.txt").write_text("a/1.png")
    assert check_folder(f"folder:{root}").images == {"training": 12, "test": 12}
