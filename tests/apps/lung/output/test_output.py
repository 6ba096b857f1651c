"""Files of a segmented scan, read back by other libraries."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from torchcaps.apps.lung import read_volume
from torchcaps.apps.lung.output import NOTICE, nodule_table, scan_page, write_dicom_seg, write_nifti
from torchcaps.apps.lung.segment import list_nodules
from torchcaps.core import UserError

from apps.lung.ct import chest, volume, write_series

NODULES = ((4, 24, 18, 3), (5, 40, 46, 2))


def found_in(scan):
    probability = np.zeros(scan.hounsfield.shape, np.float16)
    probability[chest(10, 64, NODULES) != chest(10, 64)] = 0.75
    return list_nodules(probability, scan)


@pytest.fixture(scope="module")
def scan():
    return volume(chest(10, 64, NODULES))


def test_nifti_lies_where_the_volume_lies(scan, tmp_path):
    nibabel = pytest.importorskip("nibabel")
    found = found_in(scan)
    write_nifti(tmp_path / "mask.nii.gz", found.labels, scan)
    image = nibabel.load(tmp_path / "mask.nii.gz")
    for nodule in found.nodules:
        places = np.argwhere(np.asarray(image.dataobj) == nodule.number)
        right, front, up = nibabel.affines.apply_affine(image.affine, places).mean(0)
        assert (-right, -front, up) == pytest.approx(nodule.centre)  # NIfTI counts right and front
    assert image.header.get_zooms() == pytest.approx((0.7, 0.8, 2.0))


def test_nifti_written_and_read_again_is_the_same_volume(scan, tmp_path):
    pytest.importorskip("nibabel")
    found = found_in(scan)
    write_nifti(tmp_path / "mask.nii.gz", found.labels, scan)
    again = read_volume(tmp_path / "mask.nii.gz")
    assert np.array_equal(again.hounsfield, found.labels)
    assert again.affine == pytest.approx(scan.affine)


@pytest.mark.parametrize("axes", ["RAS", "PIR"])
def test_a_nifti_mask_has_the_voxels_of_its_nifti_scan(tmp_path, axes):
    nibabel = pytest.importorskip("nibabel")
    tilted = np.array([[0.7, 0, 0.1, -30], [0, 0.8, 0.2, 12], [0, -0.1, 2.5, 4], [0, 0, 0, 1]])
    turn = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("RAS"), nibabel.orientations.axcodes2ornt(axes)
    )
    values = np.arange(-1000, -940).reshape(3, 4, 5).astype(np.int16)
    source = nibabel.Nifti1Image(values, tilted).as_reoriented(turn)
    nibabel.save(source, tmp_path / "scan.nii.gz")
    scan = read_volume(tmp_path / "scan.nii.gz")
    write_nifti(tmp_path / "mask.nii.gz", scan.hounsfield + 1000, scan)
    mask = nibabel.load(tmp_path / "mask.nii.gz")
    assert np.array_equal(np.asarray(mask.dataobj), np.asarray(source.dataobj) + 1000)
    assert mask.affine == pytest.approx(source.affine, abs=1e-5)


def test_a_dicom_segmentation_holds_each_nodule_on_its_slices(tmp_path):
    pydicom, highdicom = pytest.importorskip("pydicom"), pytest.importorskip("highdicom")
    series = write_series(tmp_path / "series", chest(10, 64, NODULES))
    scan = read_volume(series)
    found = found_in(scan)
    write_dicom_seg(tmp_path / "seg.dcm", found, scan, "test network")
    file = pydicom.dcmread(tmp_path / "seg.dcm")
    assert file.Modality == "SEG"
    assert file.PatientID == "test"
    assert [str(each.SegmentLabel) for each in file.SegmentSequence] == ["nodule 1", "nodule 2"]
    pixels = file.pixel_array
    uids = [pydicom.dcmread(path).SOPInstanceUID for path in scan.slices]
    rebuilt = np.zeros_like(found.labels)
    for frame, about in zip(pixels, file.PerFrameFunctionalGroupsSequence, strict=True):
        number = about.SegmentIdentificationSequence[0].ReferencedSegmentNumber
        source = about.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        rebuilt[uids.index(source)][frame > 0] = number
        height = about.PlanePositionSequence[0].ImagePositionPatient[2]
        assert height == pytest.approx(40 + 2.0 * uids.index(source))
    assert np.array_equal(rebuilt, found.labels)
    assert highdicom.seg.segread(tmp_path / "seg.dcm").number_of_segments == 2


def test_a_dicom_segmentation_needs_dicom_files_and_a_nodule(scan, tmp_path):
    with pytest.raises(UserError, match="DICOM"):
        write_dicom_seg(tmp_path / "seg.dcm", found_in(scan), scan, "test")
    assert not list(tmp_path.iterdir())


def test_the_table_has_a_line_for_each_nodule(scan):
    found = found_in(scan)
    rows = list(csv.DictReader(io.StringIO(nodule_table(found.nodules))))
    assert [float(row["diameter_mm"]) for row in rows] == pytest.approx(
        [nodule.diameter for nodule in found.nodules], abs=0.01
    )
    assert rows[0]["z_mm"] == "48.0"
    assert rows[0]["mean_probability"] == "0.75"


def test_the_page_needs_nothing_beside_itself_and_shows_names_as_they_are(scan):
    found = found_in(scan)
    page = scan_page(volume(scan.hounsfield, name="</script><b>x</b> & y"), found, "a <i>network</i>")
    assert "<b>x" not in page
    assert "<i>" not in page
    assert not any(word in page for word in ("http:", "https:", "href", "@import"))
    assert page.count(NOTICE) == 2
    assert "All 10 slices are in this page" in page
    assert page.count("data-finding=") == len(found.nodules) == 2
    assert "<th>mean probability</th>" in page


def test_the_grey_values_of_a_picture_are_an_assumption(scan):
    measured, picture = scan, replace(scan, spacing=None)
    found = found_in(scan)
    assert "run from -1000 to 400" in scan_page(measured, found, "test")
    assert "are taken as -1000 to 400" in scan_page(picture, found, "test")


def test_the_page_shows_the_notes_about_a_scan(scan):
    page = scan_page(replace(scan, notes=("nothing is as dark as air",)), found_in(scan), "test")
    assert "Note: nothing is as dark as air." in page


def test_the_page_of_a_scan_without_nodules_says_so(scan):
    nothing = list_nodules(np.zeros(scan.hounsfield.shape, np.float16), scan)
    assert "Nothing was found." in scan_page(scan, nothing, "test")


def test_the_page_calls_what_a_network_marks_possible(scan):
    page = scan_page(scan, found_in(scan), "test")
    assert f"<h1>Possible nodules in {scan.name}</h1>" in page
    assert "a mark may be false" in page


def test_the_page_says_at_which_height_a_slice_lies_and_shows_its_pixels_in_proportion(scan):
    page = scan_page(scan, found_in(scan), "test")
    text = page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    captions = [each["caption"] for each in json.loads(text)["slices"]]
    assert captions == [f"{40 + 2 * number:.1f} mm" for number in range(10)]
    assert "--width: 64; --height: 73" in page  # rows are 0.8 mm apart, columns 0.7 mm
