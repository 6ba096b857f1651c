"""From folders of patients to regions, splits, manifest and report."""

import errno
import hashlib
import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.apps.lung.phantom import Protocol, write_phantom
from torchcaps.apps.lung.prepare import dataset_name, find_patients, find_scans, prepare, sources, splits
from torchcaps.core import MissingDataError, UserError
from torchcaps.train import Data, Source, task_named

nibabel = pytest.importorskip("nibabel")
pytest.importorskip("pydicom")
pytest.importorskip("defusedxml")


@pytest.fixture(scope="session")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    write_phantom(folder, 3, seed=22, protocol=Protocol(size=128, slices=8))
    return folder


def write_slices(folder, patients=4, count=2):
    folder.mkdir(exist_ok=True)
    for patient in range(patients):
        for number in range(count):
            random = np.random.default_rng([patient, number])
            mask = np.zeros((140, 150), dtype=np.uint8)
            mask[40:50, 60:72] = 255
            name = f"{patient:04d}_N0_slice{number:03d}"
            Image.fromarray(random.integers(0, 255, mask.shape).astype(np.uint8)).save(folder / f"{name}.png")
            Image.fromarray(mask).save(folder / f"{name}_mask.png")
    return folder


def lines(path):
    return path.read_text().split()


def test_dicom_and_xml_become_regions_with_a_manifest(phantom, tmp_path):
    found = prepare(find_patients(phantom), tmp_path)
    assert len(found.patients) >= 3
    assert not found.problems
    regions = json.loads((tmp_path / "manifest.json").read_text())["regions"]
    assert len(regions) == found.regions == len(list((tmp_path / "images").iterdir()))
    for name, facts in regions.items():
        for kind in ("images", "masks"):
            content = (tmp_path / kind / f"{name}.png").read_bytes()
            assert hashlib.sha256(content).hexdigest() == facts["sha256"][kind]
        mask = np.asarray(Image.open(tmp_path / "masks" / f"{name}.png"))
        assert set(np.unique(mask)) <= {0, 255}  # seen by whoever opens it
        assert (mask > 0).sum() == facts["pixels"] >= 8
        assert facts["spacing_mm"] == pytest.approx([2.5, 380 / 128, 380 / 128], abs=1e-5)
        assert 1 <= facts["readers"] <= 4
        assert facts["diameter_mm"] > 3


def test_a_bad_patient_is_reported_and_does_not_stop_the_others(phantom, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(phantom, source)
    good, *_ = sorted(path.name for path in source.iterdir())
    for name, harm in (
        ("bad-gap", lambda at: (at / "0006.dcm").unlink()),
        ("bad-file", lambda at: (at / "0002.dcm").write_bytes(b"nothing")),
        ("bad-bomb", lambda at: (at / "readers.xml").write_text('<!DOCTYPE z [<!ENTITY a "b">]><z>&a;</z>')),
        ("bad-without", lambda at: (at / "readers.xml").unlink()),
    ):
        shutil.copytree(source / good, source / name)
        harm(source / name)
    foreign = source / "bad-foreign"
    shutil.copytree(source / good, foreign)
    other = sorted(source.iterdir())[-1] / "readers.xml"
    shutil.copy(other, foreign / "readers.xml")
    found = prepare(find_patients(source), tmp_path / "out")
    assert set(found.problems) == {"bad-gap", "bad-file", "bad-bomb", "bad-without", "bad-foreign"}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "missing" in report["problems"]["bad-gap"]
    assert "0002.dcm" in report["problems"]["bad-file"]
    assert "entities" in report["problems"]["bad-bomb"]
    assert "no XML" in report["problems"]["bad-without"]
    assert "annotates series" in report["problems"]["bad-foreign"]
    assert not any(name.startswith("bad") for name in found.patients)


def test_work_goes_on_where_it_stopped(tmp_path):
    patients = find_patients(write_slices(tmp_path / "source"))
    read = []

    def counted(name):
        def call():
            read.append(name)
            if name == "0002" and read.count(name) == 1:
                raise OSError("the disk was away")
            return patients[name]()

        return call

    watched = {name: counted(name) for name in patients}
    first = prepare(watched, tmp_path / "out")
    assert first.problems == {"0002": "OSError: the disk was away"}
    second = prepare(watched, tmp_path / "out")
    assert read == ["0000", "0001", "0002", "0003", "0002"]
    assert not second.problems
    assert second.regions == 8
    next((tmp_path / "out" / "images").glob("0001*")).unlink()
    prepare(watched, tmp_path / "out")
    assert read[-1] == "0001"


def test_a_full_disk_ends_the_work_and_marks_no_patient_as_unusable(tmp_path, monkeypatch):
    patients, out = find_patients(write_slices(tmp_path / "source")), tmp_path / "out"
    write, written = Image.Image.save, []

    def save(picture, *arguments, **options):
        written.append(picture)
        if len(written) == 6:  # in the middle of the second patient
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(picture, *arguments, **options)

    monkeypatch.setattr(Image.Image, "save", save)
    with pytest.raises(UserError, match="No space left on device"):
        prepare(patients, out)
    assert not (out / "report.json").exists()
    assert not (out / "train.txt").exists()
    assert prepare(patients, out).problems == {}
    prepare(patients, tmp_path / "whole")
    wanted = {path.relative_to(tmp_path / "whole"): path for path in (tmp_path / "whole").rglob("*.*")}
    for name, path in wanted.items():
        assert (out / name).read_bytes() == path.read_bytes()


SLOW_READER = """
import sys, time
from pathlib import Path
from torchcaps.apps.lung.prepare import find_patients, prepare

source, out, log = map(Path, sys.argv[1:])

def slow(name, read):
    def call():
        with log.open("a") as file:
            file.write(name + "\\n")
        time.sleep(0.2)
        return read()
    return call

prepare({name: slow(name, read) for name, read in find_patients(source).items()}, out)
"""


@pytest.mark.slow
def test_of_two_processes_one_prepares_and_the_other_waits_for_it(tmp_path):
    source, out, log = write_slices(tmp_path / "source"), tmp_path / "out", tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", SLOW_READER, source, out, log]) as other:
        deadline = time.monotonic() + 60
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        read = []
        patients = {
            name: lambda name=name, each=each: (read.append(name), each())[1]
            for name, each in find_patients(source).items()
        }
        found = prepare(patients, out)
        assert lines(log) == ["0000", "0001", "0002", "0003"]
        assert not read
        assert found.regions == 8
    assert other.returncode == 0


def test_regions_without_a_nodule_train_and_are_never_measured(phantom, tmp_path):
    out = tmp_path / "out"
    plain = prepare(find_patients(phantom), out)
    tested = lines(out / "test.txt")
    found = prepare(find_patients(phantom, negatives=1.0), out, negatives=1.0)
    regions = json.loads((out / "manifest.json").read_text())["regions"]
    empty = {name for name, facts in regions.items() if facts["nodule"] is None}
    assert 0 < len(empty) == found.regions - plain.regions <= plain.regions  # some slices hold nodules alone
    for name in empty:
        assert not np.asarray(Image.open(out / "masks" / f"{name}.png")).any()
    assert lines(out / "test.txt") == tested
    assert not empty & {*tested, *lines(out / "val.txt")}
    assert empty & set(lines(out / "train.txt"))
    assert prepare(find_patients(phantom), out).regions == plain.regions  # they go as they came


def test_patients_never_share_splits_and_smaller_shares_lie_in_larger(tmp_path):
    out = tmp_path / "out"
    prepare(find_patients(write_slices(tmp_path / "source", patients=12)), out)
    parts = {
        name: {line.split("_")[0] for line in lines(out / f"{name}.txt")} for name in ("train", "val", "test")
    }
    assert sum(map(len, parts.values())) == 12 == len(set.union(*parts.values()))
    shares = [set(lines(out / "splits" / f"share-{share}" / "train.txt")) for share in (10, 50, 100)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] == set(lines(out / "train.txt"))
    for share in (10, 50, 100):
        assert lines(out / "splits" / f"share-{share}" / "test.txt") == lines(out / "test.txt")


def test_each_patient_is_left_out_once(tmp_path):
    out = tmp_path / "out"
    prepare(find_patients(write_slices(tmp_path / "source")), out)
    tested = []
    for fold in sorted((out / "splits").glob("fold-*")):
        parts = [{line.split("_")[0] for line in lines(fold / f"{p}.txt")} for p in ("train", "val", "test")]
        assert sum(map(len, parts)) == 4 == len(set.union(*parts))
        tested += parts[2]
    assert sorted(tested) == ["0000", "0001", "0002", "0003"]


def test_each_patient_validates_once_while_there_are_twenty_or_fewer():
    names = [f"patient {number}" for number in range(20)]
    folds = splits.leave_one_out(names)
    assert sorted(folds) == sorted(name for fold in folds.values() for name in fold.val) == sorted(names)
    for name, fold in folds.items():
        assert fold.test == (name,)
        assert sorted((*fold.train, *fold.val, *fold.test)) == sorted(names)
    assert splits.leave_one_out([*names, "one more"]) == {}


def test_the_trainer_validates_on_the_listed_patients_alone(tmp_path):
    out = tmp_path / "out"
    prepare(find_patients(write_slices(tmp_path / "source", patients=8)), out)
    for split in ("", "share-50", "fold-0003"):
        source = Source(Data(name=dataset_name(out, split), fit="pad"), task_named("segmentation"), 128)
        found = source.splits(torch.device("cpu"))
        place = out / "splits" / split if split else out
        counts = [len(lines(place / f"{part}.txt")) for part in ("train", "val", "test")]
        assert [len(found.train), len(found.validation), len(source.test(torch.device("cpu")))] == counts
        name = lines(place / "val.txt")[0]
        first = np.asarray(Image.open(out / "images" / f"{name}.png"))
        np.testing.assert_array_equal(found.validation.images[0, 0].numpy(), first)


def test_pictures_of_a_nodule_are_its_slices_and_their_pieces_are_parts_of_it(tmp_path):
    source = write_slices(tmp_path / "source", patients=1, count=3)
    mask = np.zeros((140, 150), np.uint8)
    mask[20:30, 20:30] = mask[100:110, 120:130] = 255
    Image.fromarray(mask).save(source / "0000_N0_slice001_mask.png")
    for kind in ("", "_mask"):
        shutil.copy(source / f"0000_N0_slice002{kind}.png", source / f"0000_N1_slice000{kind}.png")
    cuts = find_patients(source)["0000"]().cuts
    assert [(cut.nodule, cut.region.slice) for cut in cuts] == [(0, 0), (0, 1), (0, 1), (0, 2), (1, 0)]


def test_nodules_of_several_series_of_a_patient_have_numbers_of_their_own(tmp_path, monkeypatch):
    for name in ("a.xml", "b.xml", "c.xml"):
        (tmp_path / name).touch()
    uids = {"a.xml": "1", "b.xml": None, "c.xml": "3"}
    read = {"a.xml": ("first", ["nodule"] * 2), "c.xml": ("second", ["nodule"])}
    monkeypatch.setattr(sources, "list_series", lambda folder: {})
    monkeypatch.setattr(sources, "series_uid_of", lambda path: uids[path.name])
    monkeypatch.setattr(sources, "read_annotated", lambda path, *_: read[path.name])
    found = list(find_scans(tmp_path)[tmp_path.name]())
    assert [(marked.volume, marked.first) for marked in found] == [("first", 0), ("second", 2)]


def test_names_of_volumes_may_have_dots(tmp_path):
    for name in ("1.3.6.14", "1.3.6.15"):
        for suffix in ("", "_mask"):
            image = nibabel.Nifti1Image(np.ones((20, 20, 2), np.int16), np.eye(4))
            nibabel.save(image, tmp_path / f"{name}{suffix}.nii.gz")
    found = find_patients(tmp_path)
    assert list(found) == ["1.3.6.14", "1.3.6.15"]
    assert len(found["1.3.6.14"]().cuts) == 2


def save_niftis(folder, name, values, mask):
    """A volume with its mask beside it."""
    for suffix, part in (("", values), ("_mask", mask)):
        image = nibabel.Nifti1Image(part, np.diag([0.7, 0.7, 2.0, 1.0]))
        nibabel.save(image, folder / f"{name}{suffix}.nii.gz")


def test_nifti_volumes_with_masks_are_patients(tmp_path):
    random = np.random.default_rng(0)
    for number in range(3):
        mask = np.zeros((60, 60, 4), dtype=np.uint8)
        mask[20:26, 30:36, 1:3] = 1
        values = random.integers(-1000, 400, mask.shape).astype(np.int16)
        save_niftis(tmp_path, f"case{number}", values, mask)
    nibabel.save(nibabel.Nifti1Image(values[:50], np.eye(4)), tmp_path / "case9.nii.gz")
    shutil.copy(tmp_path / "case0_mask.nii.gz", tmp_path / "case9_mask.nii.gz")
    found = prepare(find_patients(tmp_path), tmp_path / "out")
    assert (len(found.patients), found.regions) == (3, 6)
    assert "but its volume has" in found.problems["case9"]


def test_nodules_that_are_too_small_for_a_region_are_noted(tmp_path):
    for number in range(4):
        mask = np.zeros((60, 60, 4), dtype=np.uint8)
        mask[20:26, 30:36, 1:3] = number < 3
        mask[50:52, 50:53, 2] = number in (0, 3)  # six pixels
        save_niftis(tmp_path, f"case{number}", mask.astype(np.int16) - 900, mask)
    prepare(find_patients(tmp_path), tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    note = ["1 nodule with fewer than 8 pixels in every slice left out"]
    assert report["notes"] == {"case0": note, "case3": note}


def test_masks_of_another_size_and_missing_masks_are_reported(tmp_path):
    source = write_slices(tmp_path / "source", patients=5)
    Image.fromarray(np.full((9, 9), 255, np.uint8)).save(source / "0001_N0_slice000_mask.png")
    (source / "0002_N0_slice001_mask.png").unlink()
    found = prepare(find_patients(source), tmp_path / "out")
    assert "9x9 pixels, but its image has 140x150" in found.problems["0001"]
    assert "has no mask" in found.problems["0002"]


def test_too_few_patients_are_an_error_that_says_why(tmp_path):
    with pytest.raises(UserError, match="2 patients with nodules cannot be split"):
        prepare(find_patients(write_slices(tmp_path / "two", patients=2)), tmp_path / "out")
    source = write_slices(tmp_path / "source", patients=3)
    (source / "0000_N0_slice000.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"at least 3 are needed; 0000: .*slice000\.png"):
        prepare(find_patients(source), tmp_path / "other")


def test_names_cannot_leave_the_folder_or_take_the_place_of_others(tmp_path):
    patients = find_patients(write_slices(tmp_path / "source", patients=5))
    renamed = dict(zip(["../../evil", "a b", "a-b", "c", "d"], patients.values(), strict=True))
    found = prepare(renamed, tmp_path / "out")
    assert set(found.problems) == {"a-b"}
    assert {path.name for path in tmp_path.iterdir()} == {"source", "out"}


def test_folders_that_hold_nothing_are_refused(tmp_path):
    with pytest.raises(MissingDataError, match="is empty"):
        find_patients(tmp_path)
    with pytest.raises(MissingDataError, match="no folder"):
        find_patients(tmp_path / "absent")
    with pytest.raises(MissingDataError, match="is not prepared"):
        dataset_name(tmp_path)


def test_unknown_splits_are_named(tmp_path):
    prepare(find_patients(write_slices(tmp_path / "source")), tmp_path / "out")
    with pytest.raises(UserError, match=r"no split with a share of, in percent, 7; known: 10, 100, 50"):
        dataset_name(tmp_path / "out", splits.share_name(0.07))
    with pytest.raises(UserError, match=r"no split that leaves out 9999; known: 0000, "):
        dataset_name(tmp_path / "out", splits.fold_name("9999"))


def test_splits_depend_on_names_alone():
    names = [f"LIDC-IDRI-{number:04d}" for number in range(1, 101)]
    found = splits.split_patients(names)
    assert found == splits.split_patients(reversed(names))
    assert [len(found.train), len(found.val), len(found.test)] == [70, 10, 20]
    assert not splits.leave_one_out(names)
    with pytest.raises(UserError, match="between 0 and 1"):
        splits.take_share(found, 0.0)
