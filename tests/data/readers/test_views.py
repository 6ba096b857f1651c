"""ETH-80, smallNORB by viewpoint and affNIST: files are read as published, and splits keep apart."""

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import (
    DamagedFileError,
    dataset_info,
    load_dataset,
    read_eth80_masks,
    read_eth80_views,
    write_twin,
)
from torchcaps.data.api import Frame
from torchcaps.data.readers import files
from torchcaps.data.readers.affnist import read_affnist_file
from torchcaps.data.readers.eth80 import CLASSES, Eth80, familiar
from torchcaps.data.readers.smallnorb import read_smallnorb_info
from torchcaps.data.readers.smallnorb_views import familiar as familiar_pairs

VIEWS = ["000-000", "035-045", "066-117", "066-297", "090-022", "090-180"]


@pytest.fixture(scope="module")
def eth80(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eth80")
    for number, category in enumerate(CLASSES):
        for instance in range(1, 11):
            place = folder / "eth80" / category / f"{category}{instance}"
            place.mkdir(parents=True)
            for view in VIEWS:
                colour = (10 * number, 20 * instance, 2 * VIEWS.index(view))
                Image.new("RGB", (8, 8), colour).save(place / f"{place.name}-{view}.png")
    return folder


def test_photographs_of_eth80_are_read_with_how_they_were_taken(eth80):
    found = read_eth80_views(eth80)
    assert len(found.images) == 8 * 10 * len(VIEWS)
    colours = found.images[:, :, 0, 0].long()
    assert torch.equal(colours[:, 0], 10 * found.labels)
    assert torch.equal(colours[:, 1], 20 * found.instance)
    assert set(found.elevation.tolist()) == {0, 35, 66, 90}


def test_masks_of_eth80_lie_on_their_photographs_and_a_missing_one_is_named(tmp_path):
    for category in CLASSES:
        maps = tmp_path / "eth80" / category / f"{category}10" / "maps"
        maps.mkdir(parents=True)
        photograph, mask = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.uint8)
        photograph[:4, CLASSES.index(category)] = 200
        mask[:4, CLASSES.index(category)] = 255
        Image.fromarray(photograph).save(maps.parent / f"{category}10-000-000.png")
        Image.fromarray(mask).save(maps / f"{category}10-000-000-map.png")
    shown, masks = read_eth80_views(tmp_path, Frame(8, 8)), read_eth80_masks(tmp_path, Frame(8, 8))
    assert torch.equal(masks, shown.images[:, 0] > 0)
    assert read_eth80_masks(tmp_path).float().mean() == masks.float().mean()
    (tmp_path / "eth80/cow/cow10/maps/cow10-000-000-map.png").unlink()
    with pytest.raises(MissingDataError, match="cow10-000-000-map"):
        read_eth80_masks(tmp_path, Frame(8, 8))


def test_a_damaged_photograph_of_eth80_is_named_with_what_to_do(tmp_path):
    for category in CLASSES:
        (tmp_path / "eth80" / category / f"{category}1").mkdir(parents=True)
    (tmp_path / "eth80/cow/cow1/cow1-000-000.png").write_bytes(b"no picture")
    with pytest.raises(DamagedFileError, match=r"cow1-000-000\.png: cannot be read .*name another folder"):
        read_eth80_views(tmp_path)


@pytest.mark.parametrize("axis", ["instance", "azimuth", "elevation"])
def test_no_object_of_eth80_trains_and_tests(eth80, axis):
    train, test = (
        load_dataset(f"eth80:axis={axis},fold=2", split, eth80, size=8) for split in ("train", "test")
    )
    instances = [set((data.images[:, 1, 0, 0] // 20).tolist()) for data in (train, test)]
    assert instances == [{1, 2, 3, 4, 7, 8, 9, 10}, {5, 6}]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [("azimuth", {0, 1, 3, 4}), ("elevation", {2, 3, 4, 5}), ("instance", set(range(6)))],
)
def test_training_shows_familiar_views_and_novel_tests_the_others(eth80, axis, expected):
    def views(data):
        return set((data.images[:, 2, 0, 0] // 2).tolist())

    name = f"eth80:axis={axis}"
    assert views(load_dataset(name, "train", eth80, size=8)) == expected
    assert views(load_dataset(f"{name},views=familiar", "test", eth80, size=8)) == expected
    if axis == "instance":
        with pytest.raises(UserError, match="no novel views"):
            load_dataset(f"{name},views=novel", "test", eth80, size=8)
    else:
        assert views(load_dataset(f"{name},views=novel", "test", eth80, size=8)) == set(range(6)) - expected


@pytest.mark.parametrize("axis", ["instance", "azimuth", "elevation"])
def test_facts_count_the_views_that_train_and_test(axis):
    azimuths = {  # of each elevation, as published
        0: (0,),
        22: (0, 90, 180, 270),
        35: (45, 135, 225, 315),
        45: (0, 90, 180, 270),
        66: (27, 63, 117, 153, 207, 243, 297, 333),
        68: (0, 90, 180, 270),
        90: (0, 22, 45, 68, 90, 112, 135, 158, 180, 202, 225, 248, 270, 292, 315, 338),
    }
    views = torch.tensor([(elevation, turn) for elevation, turns in azimuths.items() for turn in turns])
    nothing = torch.zeros(len(views), dtype=torch.int64)
    taken = Eth80(torch.zeros(len(views), 3, 1, 1, dtype=torch.uint8), nothing, nothing, *views.unbind(1))
    known = int(familiar(taken, axis).sum())
    infos = [dataset_info(f"eth80:axis={axis},views={views}") for views in ("all", "familiar", "novel")]
    assert [info.num_train for info in infos] == [64 * known] * 3
    assert [info.num_test for info in infos] == [16 * 41, 16 * known, 16 * (41 - known)]


def test_a_folder_without_eth80_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="has no ETH-80"):
        load_dataset("eth80", "train", tmp_path)


@pytest.mark.parametrize("axis", ["azimuth", "elevation"])
def test_views_of_smallnorb_are_a_partition_of_its_test_pairs(tmp_path, axis):
    write_twin("smallnorb", tmp_path, 40)
    taken = read_smallnorb_info(tmp_path, "test")
    counts = {
        views: len(load_dataset(f"smallnorb_views:axis={axis},views={views}", "test", tmp_path))
        for views in ("all", "familiar", "novel")
    }
    assert counts["familiar"] == int(familiar_pairs(taken, axis).sum())
    assert counts["familiar"] + counts["novel"] == counts["all"] == 40
    trained = load_dataset(f"smallnorb_views:axis={axis}", "train", tmp_path)
    assert len(trained) == int(familiar_pairs(read_smallnorb_info(tmp_path, "train"), axis).sum())


def write_affnist(path, images, labels):
    scipy_io = pytest.importorskip("scipy.io")
    columns = images.transpose(0, 2, 1).reshape(len(images), -1).T  # column by column, as published
    record = {"image": np.ascontiguousarray(columns), "label_int": labels[None]}
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy_io.savemat(path, {"affNISTdata": record}, do_compression=True)


@pytest.fixture
def affnist():
    random = np.random.default_rng(0)
    return random.integers(0, 256, (12, 40, 40), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10


def test_affnist_files_are_read_upright_and_in_order(tmp_path, affnist):
    images, labels = affnist
    write_affnist(tmp_path / "affnist" / "test.mat", images, labels)
    for number, part in ((1, slice(0, 4)), (2, slice(4, 8)), (10, slice(8, 12))):
        write_affnist(tmp_path / "affnist" / "training_batches" / f"{number}.mat", images[part], labels[part])
    for split in ("train", "test"):
        found = load_dataset("affnist", split, tmp_path)
        assert torch.equal(found.images[:, 0], torch.from_numpy(images))
        assert found.labels.tolist() == labels.tolist()


def test_an_affnist_file_that_unpacks_to_too_much_is_refused(tmp_path, affnist, monkeypatch):
    write_affnist(tmp_path / "test.mat", np.zeros_like(affnist[0]), affnist[1])
    assert (tmp_path / "test.mat").stat().st_size < 4000 < 12 * 1600
    monkeypatch.setattr(files, "MOST_UNPACKED", 4000)
    with pytest.raises(UserError, match="unpacks to more than"):
        read_affnist_file(tmp_path / "test.mat")


def test_a_damaged_or_missing_affnist_file_is_named(tmp_path, affnist):
    with pytest.raises(MissingDataError, match="affnist_style, which needs none"):
        load_dataset("affnist", "test", tmp_path)
    write_affnist(tmp_path / "test.mat", *affnist)
    whole = (tmp_path / "test.mat").read_bytes()
    (tmp_path / "test.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"test.mat: not a complete") as caught:
        load_dataset("affnist", "test", tmp_path)
    assert "data get" not in str(caught.value)  # which has nothing to fetch
