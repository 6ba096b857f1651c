"""Folders of images with masks, as users have them."""

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import MaskedImages, check_dataset, dataset_info, load_dataset
from torchcaps.data.folders import folder
from torchcaps.data.folders.mask_folders import open_mask_folders
from torchcaps.train import Data, Source, task_named

SIDE = 12


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, pixels)
    else:
        Image.fromarray(pixels).save(path)


def square(value, size=(SIDE, SIDE)):
    mask = np.zeros(size, dtype=np.uint8)
    mask[2:6, 3:8] = value
    return mask


def write_pairs(root, count=10, *, value=255, image=".png", mask=".png", size=(SIDE, SIDE)):
    for number in range(count):
        of_object = square(value, size)
        save(root / "images" / f"{number}{image}", (of_object > 0).astype(np.uint8) * 200 + 20)
        save(root / "masks" / f"{number}{mask}", of_object)


def load(root, split="train", **options):
    return load_dataset(f"folder:{root}", split, task="segmentation", **options)


def test_masks_of_several_pages_are_refused(tmp_path):
    write_pairs(tmp_path, mask=".tif")
    page = Image.fromarray(square(1))
    page.save(tmp_path / "masks" / "3.tif", save_all=True, append_images=[page])
    with pytest.raises(UserError, match=r"3\.tif has 2 pages"):
        load(tmp_path)


@pytest.mark.parametrize("image", [".png", ".jpg", ".tiff", ".webp", ".npy"])
@pytest.mark.parametrize("mask", [".png", ".tif", ".npy"])
def test_every_format_is_read(tmp_path, image, mask):
    write_pairs(tmp_path, image=image, mask=mask)
    data = load(tmp_path)
    assert isinstance(data, MaskedImages)
    assert data.classes == ("object",)
    assert data.masks.shape == (8, 1, SIDE, SIDE)
    assert data.images.shape == (8, 3 if image == ".webp" else 1, SIDE, SIDE)  # it knows no grey
    assert torch.equal(data.masks[0, 0], torch.from_numpy(square(1)))
    assert len(load(tmp_path, "test")) == 2


def test_a_fifth_is_kept_for_testing_by_name_alone(tmp_path):
    write_pairs(tmp_path, 10)
    info = dataset_info(f"folder:{tmp_path}", task="segmentation")
    assert (info.num_train, info.num_test, info.task) == (8, 2, "segmentation")
    write_pairs(tmp_path / "more", 10)
    again = dataset_info(f"folder:{tmp_path / 'more'}", task="segmentation")
    assert (again.num_train, again.num_test) == (8, 2)


def test_a_single_image_cannot_be_split(tmp_path):
    write_pairs(tmp_path, 1)
    with pytest.raises(UserError, match=r"0\.png is the only image"):
        load(tmp_path)


def test_own_splits_are_kept(tmp_path):
    write_pairs(tmp_path / "train", 3)
    write_pairs(tmp_path / "val", 2)
    assert (len(load(tmp_path)), len(load(tmp_path, "test"))) == (3, 2)


def test_several_values_are_class_numbers(tmp_path):
    write_pairs(tmp_path, 5, value=1)
    write_pairs(tmp_path / "other", 5, value=2)
    for path in (tmp_path / "other").rglob("*.png"):
        path.rename(tmp_path / path.parent.name / f"b{path.name}")
    data = load(tmp_path)
    assert data.classes == ("1", "2")
    assert set(data.masks.unique().tolist()) == {0, 1, 2}
    (tmp_path / "classes.txt").write_text("cat\nchien e\u0301\n", encoding="utf-8")  # an accent apart
    assert load(tmp_path).classes == ("cat", "chien é")
    (tmp_path / "classes.txt").write_text("cat\n", encoding="utf-8")
    with pytest.raises(UserError, match="names 1 classes, but masks have the value 2"):
        load(tmp_path)


def test_an_image_finds_its_mask_whichever_way_a_system_writes_accents(tmp_path):
    for number in range(4):
        save(tmp_path / "images" / f"fl\u00e4che{number}.png", square(200))
        save(tmp_path / "masks" / f"fla\u0308che{number}.png", square(1))
    assert (len(load(tmp_path)), len(load(tmp_path, "test"))) == (3, 1)
    (tmp_path / "train.txt").write_text("fla\u0308che0\nfl\u00e4che1\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("fl\u00e4che2\n", encoding="utf-8")
    assert (len(load(tmp_path)), len(load(tmp_path, "test"))) == (2, 1)


def test_a_value_that_is_alone_stays_the_number_of_its_class_where_several_are_named(tmp_path):
    write_pairs(tmp_path, 5, value=2)
    (tmp_path / "classes.txt").write_text("liver\r\ntumour\r\n", encoding="utf-8")
    data = load(tmp_path)
    assert data.classes == ("liver", "tumour")
    assert set(data.masks.unique().tolist()) == {0, 2}
    write_pairs(tmp_path, 5, value=255)
    with pytest.raises(UserError, match="names 2 classes, but masks have the value 255"):
        load(tmp_path)
    (tmp_path / "classes.txt").write_text("tumour\n", encoding="utf-8")
    assert set(load(tmp_path).masks.unique().tolist()) == {0, 1}


def test_masks_whose_palettes_give_a_colour_other_numbers_are_refused(tmp_path):
    write_pairs(tmp_path)
    for number, palette in enumerate([[0, 0, 0, 255, 0, 0], [255, 0, 0, 0, 0, 0]] * 5):
        mask = Image.fromarray(square(1) if palette[0] == 0 else 1 - square(1))  # red on black, all of them
        mask.putpalette(palette)
        mask.save(tmp_path / "masks" / f"{number}.png")
    with pytest.raises(
        UserError, match=r"1\.png shows the number 0 in the colour in which .*\d\.png shows 1"
    ):
        load(tmp_path)


def test_palettes_of_one_colour_say_nothing_about_numbers(tmp_path):
    write_pairs(tmp_path)
    for number in range(10):
        mask = Image.fromarray(square(1 + number % 2))
        mask.putpalette([0, 0, 0] * 3)
        mask.save(tmp_path / "masks" / f"{number}.png")
    assert load(tmp_path).classes == ("1", "2")


def test_palette_images_hold_class_numbers(tmp_path):
    write_pairs(tmp_path, 5, value=1)
    for path in (tmp_path / "masks").iterdir():
        mask = Image.fromarray(np.array(Image.open(path)) * 2)
        mask.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
        mask.save(path)
    (tmp_path / "masks" / "0.png").unlink()
    first = Image.fromarray(square(1))
    first.putpalette([0, 0, 0, 255, 0, 0])
    first.save(tmp_path / "masks" / "0.png")
    data = load(tmp_path)
    assert data.classes == ("1", "2")


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_masks_are_fitted_as_their_images(tmp_path, fit):
    write_pairs(tmp_path, 5, size=(SIDE, 2 * SIDE))
    data = load(tmp_path, size=(SIDE, SIDE), fit=fit)
    assert data.images.shape[2:] == data.masks.shape[2:] == (SIDE, SIDE)
    assert set(data.masks.unique().tolist()) <= {0, 1}
    bright = data.images > 110  # 20 outside, 220 inside
    assert (bright == data.masks.bool()).float().mean() > 0.95


def test_mistakes_are_named_all_at_once(tmp_path):
    write_pairs(tmp_path, 6)
    (tmp_path / "masks" / "1.png").unlink()
    (tmp_path / "masks" / "2.png").unlink()
    with pytest.raises(UserError, match=r"(?s)2 files cannot be.*1\.png has no mask.*2\.png has no mask"):
        load(tmp_path)
    write_pairs(tmp_path, 6)
    save(tmp_path / "masks" / "3.png", square(255, (5, 9)))
    (tmp_path / "masks" / "4.png").write_bytes(b"no image")
    with pytest.raises(UserError, match=r"(?s)3\.png has 9x5 pixels, but its image has 12x12.*4\.png cannot"):
        load(tmp_path)


def test_colours_empty_masks_and_missing_folders_are_refused(tmp_path):
    with pytest.raises(MissingDataError, match="should have the folders images and masks"):
        load(tmp_path)
    write_pairs(tmp_path, 5, value=0)
    with pytest.raises(UserError, match="are empty: every pixel is background"):
        load(tmp_path)
    colours = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    colours[2, 2, 1] = 7
    save(tmp_path / "masks" / "0.png", colours)
    with pytest.raises(UserError, match=r"0\.png is in colour; a mask holds the number of a class"):
        load(tmp_path)


@pytest.mark.parametrize("suffix", [".jpg", ".webp"])
def test_masks_that_lose_numbers_are_white_on_black(tmp_path, suffix):
    size = (48, 64)
    write_pairs(tmp_path / "one", 5, mask=suffix, size=size)
    found = load(tmp_path / "one").masks[0, 0]
    assert torch.equal(found, torch.from_numpy(square(1, size)))
    write_pairs(tmp_path / "numbers", 5, value=1, mask=suffix, size=size)
    with pytest.raises(UserError, match=r"are empty.*the object is white: save class numbers as PNG"):
        load(tmp_path / "numbers")
    write_pairs(tmp_path / "greys", 5, mask=suffix, size=size)
    greys = np.zeros(size, dtype=np.uint8)
    greys[:20, :20], greys[24:, 24:] = 85, 170  # 85 would become background without a word
    save(tmp_path / "greys" / "masks" / f"0{suffix}", greys)
    with pytest.raises(UserError, match=rf"0\{suffix} has areas of several levels of grey"):
        load(tmp_path / "greys")


@pytest.mark.parametrize("kind", ["images", "masks"])
def test_files_that_differ_in_their_ending_alone_are_refused(tmp_path, kind):
    write_pairs(tmp_path, 5)
    save(tmp_path / kind / "0.npy", square(255))
    with pytest.raises(UserError, match=r"0\.png has the name of 0\.npy; rename or remove one"):
        load(tmp_path)


def test_a_class_name_stands_for_one_class(tmp_path):
    write_pairs(tmp_path, 5, value=2)
    (tmp_path / "classes.txt").write_text("cat\ncat\n")
    with pytest.raises(UserError, match=r"classes\.txt names cat more than once"):
        load(tmp_path)


def test_a_photograph_is_no_mask(tmp_path):
    write_pairs(tmp_path, 5)
    save(tmp_path / "masks" / "0.png", np.arange(SIDE * SIDE, dtype=np.uint8).reshape(SIDE, SIDE))
    with pytest.raises(UserError, match="is this a picture"):
        load(tmp_path)


def test_more_than_memory_holds_is_read_from_files(tmp_path, monkeypatch):
    write_pairs(tmp_path, 10)
    whole = load(tmp_path)
    monkeypatch.setattr("torchcaps.data.folders.picture.MOST_BYTES_IN_MEMORY", 100)
    lazy = load(tmp_path)
    assert whole.is_in_memory
    assert not lazy.is_in_memory
    chosen = torch.tensor([3, 1])
    lazy.expect(chosen)
    assert torch.equal(lazy.images[chosen], whole.images[chosen])
    assert torch.equal(lazy.targets_at(chosen), whole.targets_at(chosen))
    assert torch.equal(lazy.subset(chosen).masks[torch.tensor([1])], whole.masks[torch.tensor([1])])


def test_a_run_looks_through_its_folder_once(tmp_path, monkeypatch):
    write_pairs(tmp_path, 10)
    opened = []
    layout = folder.LAYOUTS["segmentation"]
    monkeypatch.setitem(folder.LAYOUTS, "segmentation", lambda *place: opened.append(place) or layout(*place))
    source = Source(Data(name=f"folder:{tmp_path}", validation=0.25), task_named("segmentation"), SIDE)
    device = torch.device("cpu")
    assert source.splits(device).info is source.info()
    assert len(source.test(device)) == 2
    assert len(opened) == 1


def test_a_check_reads_masks_too_and_takes_photographs_of_any_size(tmp_path):
    write_pairs(tmp_path, 3)
    write_pairs(tmp_path / "wide", 3, size=(SIDE, 2 * SIDE))
    for part in ("images", "masks"):
        (tmp_path / "wide" / part / "0.png").rename(tmp_path / part / "wide.png")
    assert check_dataset(f"folder:{tmp_path}") == []
    (tmp_path / "masks" / "1.png").unlink()
    with pytest.raises(UserError, match=r"1\.png has no mask"):
        check_dataset(f"folder:{tmp_path}")


def write_lists(folder, **names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in names.items():
        (folder / f"{name}.txt").write_text("".join(f"{number}\n" for number in numbers))


@pytest.mark.parametrize("place", ["", "splits/half"])
def test_lists_say_which_images_train_validate_and_test(tmp_path, place):
    write_pairs(tmp_path)
    write_lists(tmp_path / place, train=[1, 4, 5], val=[2], test=[9, 0])
    source = Source(Data(name=f"folder:{tmp_path / place}", fit="pad"), task_named("segmentation"), SIDE)
    found = source.splits(torch.device("cpu"))
    assert [len(found.train), len(found.validation), len(source.test(torch.device("cpu")))] == [3, 1, 2]
    assert check_dataset(f"folder:{tmp_path / place}") == []


def test_lists_share_the_class_names_of_the_folder_their_images_lie_in(tmp_path):
    write_pairs(tmp_path, value=2)
    write_lists(tmp_path / "splits" / "half", train=[1, 4, 5], test=[9, 0])
    (tmp_path / "classes.txt").write_text("liver\ntumour\n", encoding="utf-8")
    data = load(tmp_path / "splits" / "half")
    assert data.classes == load(tmp_path).classes == ("liver", "tumour")
    assert set(data.masks.unique().tolist()) == {0, 2}


@pytest.mark.parametrize(("inside", "outside"), [(0, 0), (255, 255), (0, 255)])
def test_a_mask_in_its_transparency_is_not_read_as_another(tmp_path, inside, outside):
    write_pairs(tmp_path)
    is_object = square(1) > 0
    value = np.where(is_object, inside, outside).astype(np.uint8)
    alpha = np.where(is_object, 255, 0).astype(np.uint8)
    Image.fromarray(np.stack([value] * 3 + [alpha], 2)).save(tmp_path / "masks/1.png")
    with pytest.raises(UserError, match=r"1\.png has clear parts other than its background"):
        load(tmp_path)


def test_a_white_object_on_nothing_is_a_mask(tmp_path):
    write_pairs(tmp_path)
    expected = [load(tmp_path, split).masks for split in ("train", "test")]
    for path in (tmp_path / "masks").iterdir():
        mask = np.asarray(Image.open(path))
        Image.fromarray(np.stack([mask] * 4, 2)).save(path)
    for split, masks in zip(("train", "test"), expected, strict=True):
        assert torch.equal(load(tmp_path, split).masks, masks)


def test_a_colour_image_that_happens_to_test_makes_all_images_rgb(tmp_path):
    write_pairs(tmp_path)
    for path in (tmp_path / "images").iterdir():
        Image.open(path).convert("L").save(path)
    assert load(tmp_path).images.shape[1] == 1
    tested = open_mask_folders(tmp_path).images["test"][0]
    Image.open(tested).convert("RGB").save(tested)
    for split in ("train", "test"):
        assert load(tmp_path, split).images.shape[1] == 3


def test_images_in_folders_below_are_not_left_out_without_a_word(tmp_path):
    write_pairs(tmp_path)
    (tmp_path / "images/more").mkdir()
    (tmp_path / "images/1.png").rename(tmp_path / "images/more/1.png")
    with pytest.raises(
        UserError, match=r"images/more holds images, but only those in .*images itself are read"
    ):
        load(tmp_path)


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_a_folder_val_beside_train_and_test_validates(tmp_path, name):
    for split, count in (("train", 4), (name, 2), ("test", 3)):
        write_pairs(tmp_path / split, count)
    source = Source(Data(name=f"folder:{tmp_path}", fit="pad"), task_named("segmentation"), SIDE)
    found = source.splits(torch.device("cpu"))
    assert [len(found.train), len(found.validation), len(source.test(torch.device("cpu")))] == [4, 2, 3]
    damaged = tmp_path / name / "images" / "1.png"
    damaged.write_bytes(damaged.read_bytes()[:45])  # little more than its header
    with pytest.raises(UserError, match=rf"{name}/images/1\.png cannot be read"):
        check_dataset(f"folder:{tmp_path}")


def test_lists_that_name_nothing_or_other_files_are_refused(tmp_path):
    write_pairs(tmp_path)
    write_lists(tmp_path, train=[1, 2])
    with pytest.raises(MissingDataError, match=r"test\.txt is missing"):
        load(tmp_path)
    write_lists(tmp_path, train=[1, 2], test=["../images/3"])
    with pytest.raises(UserError, match=r"test\.txt names \.\./images/3, which is no image"):
        load(tmp_path)
    write_lists(tmp_path, train=[], test=[3])
    with pytest.raises(MissingDataError, match=r"train\.txt names no images"):
        load(tmp_path)


@pytest.mark.parametrize(
    "lists",
    [
        {"train": [1, 2, 3], "test": [3]},
        {"train": [1, 2], "val": [3], "test": [3]},
        {"train": [1, 3, 3], "test": [2]},
    ],
)
def test_an_image_that_is_listed_twice_is_refused(lists, tmp_path):
    write_pairs(tmp_path)
    write_lists(tmp_path, **lists)
    with pytest.raises(UserError, match="3 is listed 2 times; an image trains, validates or tests"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["classes.txt", "train.txt"])
def test_lists_that_an_editor_saved_in_another_encoding_are_named(name, tmp_path):
    write_pairs(tmp_path)
    (tmp_path / "test.txt").write_text("0\n")
    (tmp_path / "train.txt").write_text("1\n")
    (tmp_path / name).write_text("1\n", encoding="utf-16")
    with pytest.raises(UserError, match=rf"{name} is no text in UTF-8"):
        load(tmp_path)
