"""Folders of images, one for each class."""

import errno
import os
import shutil
import sys
import unicodedata
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import (
    check_dataset,
    dataset_info,
    load_dataset,
    read_folder,
    synthetic_images,
    write_twin,
)
from torchcaps.data.folders.class_folders import open_class_folders
from torchcaps.data.folders.layout import split_by_name
from torchcaps.data.folders.picture import read_picture
from torchcaps.data.twin import FOLDER_TWIN
from torchcaps.train import recipe_for_data
from torchcaps.train.recipe import Data
from torchcaps.train.recipe.fitted import name_dataset
from torchcaps.train.source import Source
from torchcaps.train.tasks import task_named


@pytest.fixture
def root(tmp_path):
    write_twin("folder", tmp_path / "pets", 12)
    return tmp_path / "pets"


def save(path, shape=(16, 16, 3), level=100):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(shape, level, np.uint8)).save(path)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_folder_gives_back_what_was_written(root, split):
    expected = synthetic_images(FOLDER_TWIN, split, 12)
    expected = expected.subset(expected.labels.argsort(stable=True))
    found = load_dataset(f"folder:{root}", split)
    assert torch.equal(found.images, expected.images)
    assert torch.equal(found.labels, expected.labels)
    assert found.classes == ("a", "b", "c")


def test_images_with_masks_are_not_two_classes(tmp_path):
    for kind in ("images", "masks"):
        for number in range(3):
            save(tmp_path / kind / f"{number}.png")
    with pytest.raises(UserError, match="a segmentation recipe takes it"):
        open_class_folders(tmp_path)


def test_a_relative_path_counts_from_the_data_folder(root):
    assert len(load_dataset("folder:pets", "train", root.parent)) == 12


@pytest.fixture
def split_in_three(root):
    """Twelve images train, six of two classes validate, and twelve test."""
    for label in "ab":
        for number in range(3):
            save(root / "val" / label / f"{number}.png")
    return root


def splits_of(root, **settings):
    source = Source(Data(name=f"folder:{root}", **settings), task_named("classification"))
    return source.splits(torch.device("cpu")), source.test(torch.device("cpu"))


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_val_beside_train_and_test_validates(split_in_three, name):
    (split_in_three / "val").rename(split_in_three / name)
    found, test = splits_of(split_in_three)
    assert [len(found.train), len(found.validation), len(test)] == [12, 6, 12]
    assert (found.validation.images == 100).all()
    assert found.validation.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert read_folder(f"folder:{split_in_three}") == {"training": 12, "validation": 6, "test": 12}
    break_image(split_in_three / name / "b/1.png")
    with pytest.raises(UserError, match=rf"{name}/b/1\.png cannot be read"):
        check_dataset(f"folder:{split_in_three}")


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_val_serves_as_test_where_there_is_none(root, name):
    (root / "test").rename(root / name)
    assert len(load_dataset(f"folder:{root}", "test")) == 12
    assert read_folder(f"folder:{root}") == {"training": 12, "test": 12}


def test_valid_is_a_class_beside_other_classes(tmp_path):
    for name in ("valid", "invalid"):
        for number in range(5):
            save(tmp_path / name / f"{number}.png")
    assert load_dataset(f"folder:{tmp_path}", "train").classes == ("invalid", "valid")


def test_contradictions_about_validation_are_refused(split_in_three):
    name, recipe = f"folder:{split_in_three}", "photos/efficient_capsnet"
    with pytest.raises(UserError, match=r"has its own validation images.*leave it out"):
        recipe_for_data(recipe, ["data.validation=0.2"], data=name)
    save(split_in_three / "val/z/1.png")
    with pytest.raises(UserError, match=r"val/z is not a folder of one of the training classes: a, b, c"):
        check_dataset(name)
    shutil.rmtree(split_in_three / "val")
    (split_in_three / "val").mkdir()
    with pytest.raises(UserError, match="val has no images"):
        check_dataset(name)
    (split_in_three / "valid").mkdir()
    with pytest.raises(UserError, match="has the folders val and valid, which mean the same; keep one"):
        check_dataset(name)


def test_a_batch_is_chosen_by_the_images_that_train(tmp_path):
    for split, count in (("train", 32), ("test", 1), ("val", 1)):
        for label in "ab":
            for number in range(count):
                save(tmp_path / split / label / f"{number}.png", (4, 4, 3))
    recipe, data = "photos/efficient_capsnet", f"folder:{tmp_path}"
    assert recipe_for_data(recipe, data=data).recipe.batch_size == 16  # four steps of 64 images
    shutil.rmtree(tmp_path / "val")
    assert recipe_for_data(recipe, data=data).recipe.batch_size == 8  # a part of them validates


def test_images_of_other_sizes_need_a_common_size(root):
    odd = root / "train/b/odd.png"
    save(odd, (8, 20, 3))
    with pytest.raises(UserError, match=r"odd\.png has 20x8 pixels"):
        load_dataset(f"folder:{root}", "train")
    assert load_dataset(f"folder:{root}@10", "train").images.shape == (13, 3, 10, 10)
    assert load_dataset(f"folder:{root}@44x60", "train").images.shape == (13, 3, 44, 60)
    assert load_dataset(f"folder:{root}", "train", size=(8, 9)).images.shape == (13, 3, 8, 9)
    assert load_dataset(f"folder:{root}@10", "train", size=12).images.shape == (13, 3, 10, 10)


@pytest.mark.parametrize(
    ("fit", "middle_row"),
    [("crop", [60, 60, 100, 100]), ("stretch", [20, 60, 100, 140]), ("pad", [20, 60, 100, 140])],
)
def test_a_wide_image_is_cut_padded_or_stretched(fit, middle_row, tmp_path):
    for split, name in (("train", "x"), ("train", "y"), ("test", "x")):
        (tmp_path / split / name).mkdir(parents=True)
        columns = np.repeat(np.array([20, 60, 100, 140], np.uint8), 2)
        Image.fromarray(np.tile(columns, (4, 1))).save(tmp_path / split / name / "1.png")
    (image,) = load_dataset(f"folder:{tmp_path}@4", "test", fit=fit).images[:, 0]
    assert np.abs(image[1].int().numpy() - middle_row).max() <= 10  # neighbours mix at the edges
    assert (image[0] == 0).all() == (fit == "pad")
    assert dataset_info(f"folder:{tmp_path}@4", fit=fit).fit == fit


@pytest.mark.parametrize("side", ["0", "12x0", "20000", "200000", "1" * 5000])
def test_a_size_that_no_image_has_is_refused(side, root):
    with pytest.raises(UserError, match="sides must lie between 1 and 10,000"):
        load_dataset(f"folder:{root}@{side}", "train")


def test_images_are_greyscale_only_if_all_training_images_are(tmp_path):
    for split in ("train", "test"):
        for name in ("x", "y"):
            save(tmp_path / split / name / "1.png", (4, 4))
    assert load_dataset(f"folder:{tmp_path}", "train").images.shape == (2, 1, 4, 4)
    save(tmp_path / "test/x/colour.png", (4, 4, 3))
    with pytest.raises(
        UserError, match=r"colour\.png is stored in colour \(mode RGB\).*save it as a greyscale"
    ):
        load_dataset(f"folder:{tmp_path}", "test")
    save(tmp_path / "train/x/colour.png", (4, 4, 3))
    for split in ("train", "test"):
        assert load_dataset(f"folder:{tmp_path}", split).images.shape == (3, 3, 4, 4)


def test_a_colour_image_that_happens_to_test_makes_all_images_rgb(tmp_path):
    for name in ("x", "y"):
        for number in range(5):
            save(tmp_path / name / f"{number}.png", (4, 4))
    save(open_class_folders(tmp_path).images["test"][0], (4, 4, 3))
    for split in ("train", "test"):
        assert load_dataset(f"folder:{tmp_path}", split).images.shape[1] == 3


@pytest.mark.parametrize("size", ["", "@16"])
def test_a_path_may_have_a_sign_that_begins_a_size(size, tmp_path):
    root = tmp_path / "me@home" / "pets"
    write_twin("folder", root, 12)
    name = name_dataset(f"{root}{size}")
    assert name == f"folder:{root}{size}"
    assert len(load_dataset(name, "train")) == 12


def test_a_home_that_nobody_has_is_one_line(root):
    for name, data_dir in (("folder:~nobody-of-that-name/pets", root), ("mnist", "~nobody-of-that-name")):
        with pytest.raises(UserError, match="there is no such home folder"):
            load_dataset(name, "train", data_dir)


def test_a_folder_that_is_not_there_is_named_once_for_each_place(tmp_path):
    with pytest.raises(UserError, match=f"no folder {tmp_path}/no; --data-dir names .* holds no$"):
        load_dataset(f"folder:{tmp_path}/no", "train", tmp_path)
    with pytest.raises(UserError, match=f"no folder no or {tmp_path}/no; --data-dir"):
        load_dataset("folder:no", "train", tmp_path)
    with pytest.raises(UserError, match="'folder:' names no folder"):
        load_dataset("folder:", "train", tmp_path)


@pytest.mark.parametrize("name", ["{root}/before/pets", "before/pets", "before/pets@16"])
def test_a_folder_that_moved_is_found_in_the_data_folder_by_its_last_part(name, tmp_path):
    write_twin("folder", tmp_path / "now" / "pets", 12)
    assert len(load_dataset(f"folder:{name.format(root=tmp_path)}", "train", tmp_path / "now")) == 12


def break_image(path):
    path.write_bytes(path.read_bytes()[:60])


def test_a_broken_image_is_named(root):
    path = root / "train/a/00000.png"
    break_image(path)
    with pytest.raises(UserError, match=r"00000\.png cannot be read"):
        load_dataset(f"folder:{root}", "train")
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"00000\.png cannot be read"):
        load_dataset(f"folder:{root}", "train")


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("numbers", [(0, 2), (1, 3), (0, 1, 2, 3)])
def test_all_bad_files_are_listed_at_once(split, numbers, root):
    files = sorted((root / split / "a").iterdir())
    for number in numbers:
        break_image(files[number])
    with pytest.raises(UserError, match=f"{len(numbers)} files cannot be used") as caught:
        load_dataset(f"folder:{root}", split)
    assert all((files[number].name in str(caught.value)) == (number in numbers) for number in range(4))


def test_a_long_list_of_bad_files_is_cut(root):
    for path in root.rglob("*.png"):
        break_image(path)
    with pytest.raises(UserError, match=r"(?s)12 files cannot be used.*and 2 more$") as caught:
        load_dataset(f"folder:{root}", "train")
    assert str(caught.value).count("\n") == 11


def test_only_files_with_the_ending_of_an_image_are_read(root):
    for name in ("a/.DS_Store", ".hidden", "a/notes.txt", "a/Thumbs.db", "readme.md"):
        (root / "train" / name).touch()
    assert len(load_dataset(f"folder:{root}", "train")) == 12


@pytest.mark.parametrize("ending", ["webp", "tiff", "tif", "bmp", "jpg", "jpeg", "JPEG", "PNG"])
def test_all_usual_image_files_are_read(ending, root):
    picture = np.full((16, 16, 3), 100, np.uint8)
    path = root / f"train/a/photo.{ending}"
    Image.fromarray(picture).save(path)
    found = load_dataset(f"folder:{root}", "train")
    assert len(found) == 13
    assert (found.images == 100).flatten(1).all(1).sum() == 1


@pytest.mark.parametrize("split", ["train", "test"])
def test_photographs_of_phones_are_not_left_out_without_a_word(root, split):
    (root / split / "a/IMG_1.HEIC").touch()
    with pytest.raises(UserError, match=r"IMG_1\.HEIC cannot be read .* save it as JPEG first"):
        load_dataset(f"folder:{root}", split)


@pytest.mark.parametrize("split", ["train", "test"])
def test_images_in_folders_below_a_class_are_not_left_out_without_a_word(root, split):
    save(root / split / "a/.ipynb_checkpoints/1.png")
    (root / split / "a/notes").mkdir()
    assert len(load_dataset(f"folder:{root}", split)) == 12
    save(root / split / "a/2024/may/1.png")
    with pytest.raises(UserError, match=r"a/2024 holds images, but only those in .*a itself are read"):
        load_dataset(f"folder:{root}", split)


@pytest.mark.parametrize("name", ["loose.png", "IMG_1.HEIC"])
@pytest.mark.parametrize("folder", ["train", "test", "val", ""])
def test_images_beside_class_folders_are_not_left_out_without_a_word(root, folder, name):
    root = root if folder else root / "train"  # class folders alone
    place = root / folder
    if folder == "val":
        save(place / "a/1.png")
    (place / ".loose.png").touch()
    (place / "notes.txt").touch()
    load_dataset(f"folder:{root}", "train")
    (place / name).touch()
    with pytest.raises(
        UserError, match=rf"{name} is in no class folder; move it into one, or out of {place}"
    ):
        open_class_folders(root)


def test_images_without_class_folders_are_told_the_layout(root):
    with pytest.raises(UserError, match=r"a should have a folder for each of at least two classes"):
        open_class_folders(root / "train" / "a")


@pytest.mark.parametrize("forms", list(product(["NFC", "NFD"], repeat=2)))
def test_accents_are_the_same_whichever_way_a_system_writes_them(tmp_path, forms):
    for split, form in zip(("train", "test"), forms, strict=True):
        for name, level in (("\u00c4pfel", 200), ("birne", 50)):
            for number in range(2):
                save(tmp_path / split / unicodedata.normalize(form, name) / f"{number}.png", level=level)
    for split in ("train", "test"):
        found = load_dataset(f"folder:{tmp_path}", split)
        assert found.classes == ("birne", "\u00c4pfel")
        assert [int(image[0, 0, 0]) for image in found.images] == [50, 50, 200, 200]
        assert found.labels.tolist() == [0, 0, 1, 1]


def test_the_split_does_not_depend_on_how_a_system_writes_accents(tmp_path):
    names = [f"{letter}{number}" for letter in "ae\u00e0\u00e9\u00fcz" for number in range(4)]
    splits = []
    for form in ("NFC", "NFD"):
        for place, name in product(("one", "two"), names):
            level = names.index(name) + 100 * (place == "one")
            save(tmp_path / form / place / f"{unicodedata.normalize(form, name)}.png", level=level)
        found = open_class_folders(tmp_path / form)
        splits.append({split: found.examples(split).images[:, 0, 0, 0].tolist() for split in found.images})
    assert splits[0] == splits[1]


def test_the_split_of_plain_names_stays_what_it_was(tmp_path):
    files = [tmp_path / place / f"{number}.png" for place in ("b", "a") for number in range(10)]
    chosen = split_by_name(files)
    assert [path.relative_to(tmp_path).as_posix() for path in chosen["test"]] == [
        "a/1.png",
        "a/8.png",
        "b/1.png",
        "b/8.png",
    ]
    assert chosen["train"] == [path for path in files if path not in chosen["test"]]


def test_folders_of_splits_with_other_names_are_not_classes(root):
    (root / "train").rename(root / "Training")
    (root / "test").rename(root / "Testing")
    with pytest.raises(UserError, match=r"Testing is taken for a class.*called train, test and val"):
        load_dataset(f"folder:{root}", "train")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_link_to_nothing_is_not_left_out_without_a_word(root, split):
    link = root / split / "a/linked.png"
    link.symlink_to(root / "train/a/00000.png")
    assert len(load_dataset(f"folder:{root}", split)) == 13
    link.unlink()
    link.symlink_to(root / "nowhere.png")
    with pytest.raises(UserError, match=r"linked\.png is a link to a file that is not there"):
        load_dataset(f"folder:{root}", split)


def test_a_class_that_is_a_link_to_nothing_is_not_left_out_without_a_word(root):
    (root / "train/d").symlink_to(root / "nowhere")
    with pytest.raises(UserError, match=r"train/d is a link to a folder that is not there; mend it"):
        load_dataset(f"folder:{root}", "train")


def test_a_folder_called_as_an_image_is_not_left_out_without_a_word(root):
    (root / "train/a/9.png").mkdir()
    with pytest.raises(UserError, match=r"a/9\.png is a folder, where an image file is expected"):
        load_dataset(f"folder:{root}", "train")


def test_a_folder_without_permission_is_answered_with_what_to_do(root, monkeypatch):
    listed = Path.iterdir

    def refuse(folder):
        if folder.name == "b":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UserError, match=r"no permission to read .*/b; give it with chmod"):
        load_dataset(f"folder:{root}", "train")


def test_grey_scans_of_16_bits_are_learnt_as_those_of_8(tmp_path):
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for label, number in product("ab", range(5)):
        for folder, pixels in (("deep", levels.astype(np.uint16) * 257), ("plain", levels)):
            path = tmp_path / folder / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.roll(pixels, number)).save(path)
    deep, plain = (load_dataset(f"folder:{tmp_path / name}", "train").images for name in ("deep", "plain"))
    assert deep.shape[1] == 1
    assert torch.equal(deep, plain)


def test_an_image_of_numbers_without_a_white_is_refused(root):
    Image.fromarray(np.zeros((16, 16), np.float32)).save(root / "train/a/deep.tif")
    with pytest.raises(UserError, match=r"deep\.tif has more than 8 bits"):
        load_dataset(f"folder:{root}", "train")


def test_a_class_whose_name_begins_with_underscores_is_a_class(root):
    for split in ("train", "test"):
        save(root / split / "__background__/1.png")
        save(root / split / "__MACOSX/1.png")  # what an archive of a Mac leaves behind
    assert dataset_info(f"folder:{root}").classes == ("__background__", "a", "b", "c")


def test_a_training_class_without_images_is_refused(root):
    (root / "train/d").mkdir()
    (root / "train/d/.DS_Store").touch()
    for read in (dataset_info, check_dataset):
        with pytest.raises(UserError, match=r"train/d is a class with 0 images"):
            read(f"folder:{root}")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_check_reads_both_splits(root, split):
    assert check_dataset(f"folder:{root}") == []
    save(root / split / "b/wide.png", (8, 20, 3))
    assert check_dataset(f"folder:{root}") == []  # training brings photographs to one size
    (root / split / "b/odd.png").write_text("no picture")
    with pytest.raises(UserError, match=r"odd\.png"):
        check_dataset(f"folder:{root}")


def test_a_test_class_that_was_not_trained_is_refused(root):
    save(root / "test/d/1.png")
    with pytest.raises(UserError, match=r"training classes: a, b, c"):
        load_dataset(f"folder:{root}", "test")


def test_missing_folders_are_named(tmp_path, root):
    with pytest.raises(MissingDataError, match="nowhere"):
        load_dataset("folder:nowhere", "train", tmp_path)
    (tmp_path / "empty/train").mkdir(parents=True)
    with pytest.raises(UserError, match="at least two classes"):
        load_dataset(f"folder:{tmp_path / 'empty'}", "train")
    shutil.rmtree(root / "train")
    with pytest.raises(MissingDataError, match="no folder train"):
        load_dataset(f"folder:{root}", "test")


def test_missing_test_images_are_named(root):
    shutil.rmtree(root / "test")
    with pytest.raises(MissingDataError, match="no folder test or val"):
        load_dataset(f"folder:{root}", "test")


def names(root, split):
    content = open_class_folders(root)
    return [f"{path.parent.name}/{path.name}" for path in content.images[split]]


def test_class_folders_alone_are_split_by_the_names_of_their_files(tmp_path):
    for name in ("x", "y"):
        for number in range(20):
            save(tmp_path / name / f"{number}.png", (4, 4, 3))
    train, test = (names(tmp_path, split) for split in ("train", "test"))
    assert (len(train), len(test)) == (32, 8)
    assert not set(train) & set(test)
    assert sum(name.startswith("x/") for name in test) == 4  # a fifth of each class
    data = load_dataset(f"folder:{tmp_path}", "test")
    assert data.classes == ("x", "y")
    assert torch.bincount(data.labels).tolist() == [4, 4]
    other = tmp_path.with_name("moved")
    tmp_path.rename(other)
    assert names(other, "test") == test


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_in_no_encoding_are_split_too(tmp_path):
    for label in "ab":
        for number in range(5):
            save(tmp_path / label / f"{number}.png")
        os.rename(tmp_path / label / "0.png", os.fsencode(tmp_path / label) + b"/\xff.png")
    splits = [load_dataset(f"folder:{tmp_path}", split) for split in ("train", "test")]
    assert [len(each) for each in splits] == [8, 2]


def test_a_class_with_one_image_cannot_be_split(tmp_path):
    for name in ("x/1", "x/2", "y/1"):
        save(tmp_path / f"{name}.png")
    with pytest.raises(UserError, match=r"y is a class with 1 image, and needs 2 or more"):
        load_dataset(f"folder:{tmp_path}", "train")


@pytest.mark.parametrize("fit", ["crop", "stretch"])
def test_images_that_do_not_fit_in_memory_are_read_when_they_are_needed(fit, root, monkeypatch):
    name = f"folder:{root}@10"
    expected = load_dataset(name, "train", fit=fit)
    monkeypatch.setattr("torchcaps.data.folders.picture.MOST_BYTES_IN_MEMORY", 100)
    found = load_dataset(name, "train", fit=fit)
    assert not found.is_in_memory
    chosen = torch.tensor([3, 0, 7])
    found.expect(chosen)
    assert torch.equal(found.images[chosen], expected.images[chosen])
    assert torch.equal(found.subset(chosen).images[torch.arange(3)], expected.images[chosen])
    assert torch.equal(torch.cat([images for images, _ in found.batches(5)]), expected.images)
    break_image(root / "train/b/00001.png")
    with pytest.raises(UserError, match=r"00001\.png cannot be read"):
        load_dataset(name, "train")


def test_a_folder_is_described_by_its_files(root):
    info = dataset_info(f"folder:{root}")
    pixels = load_dataset(f"folder:{root}", "train").images.double() / 255
    assert (info.channels, info.num_train, info.num_test) == (3, 12, 12)
    assert (info.height, info.width) == pixels.shape[2:]  # the size that predict brings other images to
    assert info.mean == pytest.approx(pixels.mean((0, 2, 3)).tolist())
    assert info.std == pytest.approx(pixels.std((0, 2, 3), correction=0).tolist())
    assert len(info.reader(root, "test")) == 12


def test_a_training_decodes_each_of_its_images_once(root, monkeypatch):
    described, decoded = dataset_info(f"folder:{root}@10"), []
    monkeypatch.setattr(
        "torchcaps.data.folders.class_folders.read_picture",
        lambda path, **how: decoded.append(path) or read_picture(path, **how),
    )
    source = Source(Data(name=f"folder:{root}", validation=0.25), task_named("classification"), 10)
    info = source.splits(torch.device("cpu")).info
    assert len(decoded) == len(set(decoded)) + 1 == 13  # the first one tells the size
    assert (info.mean, info.std) == (described.mean, described.std)
    assert (info.channels, info.height, info.width) == (3, 10, 10)


class Largest(TorchDispatchMode):
    """Remembers the bytes of the largest tensor that is made."""

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.most = max(
            [self.most, *(part.nbytes for part in tree_leaves(made) if isinstance(part, torch.Tensor))]
        )
        return made


def test_pixels_are_counted_without_a_copy_as_numbers(tmp_path):
    for name in ("a/0", "a/1", "a/2", "b/0", "b/1", "b/2"):
        save(tmp_path / f"{name}.png", (128, 128, 3))
    with Largest() as made:
        info = dataset_info(f"folder:{tmp_path}")
    assert info.mean == pytest.approx((100 / 255,) * 3)
    assert made.most <= 128 * 128 * 3
