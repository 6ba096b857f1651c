"""A scan from DICOM files to all that is written about it."""

import json

import numpy as np
import pytest
from PIL import Image

from torchcaps.apps.lung import scan
from torchcaps.apps.lung.segment import list_nodules
from torchcaps.train import load_run

from apps.lung.ct import chest, volume, write_series
from apps.lung.runs import untrained_run

NODULES = ((4, 24, 18, 3), (5, 40, 46, 3))


def mark_nodules(network, hounsfield, *, on_slices):
    """What a good network would say."""
    on_slices(len(hounsfield), len(hounsfield))
    return np.where(chest(10, 64, NODULES) != chest(10, 64), 0.9, 0.0).astype(np.float16)


@pytest.mark.parametrize(
    "name", [pytest.param("segcaps_tiny_test", marks=pytest.mark.slow), "unet_tiny_test"]
)
def test_everything_about_a_scan_is_written_and_readable(tmp_path, monkeypatch, name):
    nibabel, pydicom = pytest.importorskip("nibabel"), pytest.importorskip("pydicom")
    pytest.importorskip("highdicom")
    monkeypatch.setattr(scan, "segment_volume", mark_nodules)
    series = write_series(tmp_path / "series", chest(10, 64, NODULES))
    out = tmp_path / "found"
    out.mkdir()
    for other in ("nodule-7.png", "mask.png", "notes.txt"):
        (out / other).write_bytes(b"of another scan")
    result = scan.segment_scan(load_run(untrained_run(tmp_path / "run", name)), series, out)
    assert len(result["nodules"]) == 2
    (out / "notes.txt").unlink()  # what is not ours is kept
    assert sorted(result["files"]) == sorted(str(path) for path in out.iterdir())
    assert np.asarray(nibabel.load(out / "mask.nii.gz").dataobj).max() == 2
    assert len(pydicom.dcmread(out / "mask.dcm").SegmentSequence) == 2
    with Image.open(out / "nodule-2.png") as picture:
        assert picture.width > 900
    assert json.loads((out / "result.json").read_text()) == result
    carried = {row["nodule"]: row for row in result["carriers"]}
    assert set(carried) == ({1, 2} if "segcaps" in name else set())
    for row in carried.values():
        assert row["fall"] == pytest.approx(row["before"] - row["without_strongest"])


def test_odd_headers_cost_no_other_file(tmp_path, monkeypatch):
    pytest.importorskip("highdicom")
    import pydicom

    monkeypatch.setattr(scan, "segment_volume", mark_nodules)
    series = write_series(tmp_path / "series", chest(10, 64, NODULES))
    for path in series.iterdir():
        file = pydicom.dcmread(path)
        del file.StudyInstanceUID
        file.save_as(path)
    run = load_run(untrained_run(tmp_path / "run", "unet_tiny_test"))
    result = scan.segment_scan(run, series, tmp_path / "found")
    assert "no DICOM segmentation" in result["notes"][0]
    assert (tmp_path / "found" / "mask.nii.gz").is_file()
    assert not (tmp_path / "found" / "mask.dcm").exists()


def test_a_slice_is_drawn_with_the_sides_of_its_pixels():
    ct = volume(chest(10, 64, NODULES))
    found = list_nodules(mark_nodules(None, ct.hounsfield, on_slices=lambda *_: None), ct)
    detail = scan._detail(ct, found, found.nodules[0], None)
    assert detail.aspect == pytest.approx(0.8 / 0.7)  # rows are 0.8 mm apart, columns 0.7 mm
    assert detail.centre == pytest.approx((24, 18), abs=0.5)
    assert np.array_equal(detail.mask, found.labels[4] > 0)
