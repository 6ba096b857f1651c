"""DICOM series as scanners, archives and accidents leave them."""

import numpy as np
import pytest

from torchcaps.apps.lung import Volume, read_volume
from torchcaps.apps.lung.phantom.files import write_series
from torchcaps.core import MissingDataError, UserError

pydicom = pytest.importorskip("pydicom")
pixels, uids = pytest.importorskip("pydicom.pixels"), pytest.importorskip("pydicom.uid")

SHAPE, SPACING, UID = (5, 12, 10), (2.5, 0.8, 0.7), "1.2.826.0.1.3680043.8.498.1"


def made_volume(uid=UID, name="case", slices=SHAPE[0], seed=0):
    values = np.random.default_rng(seed).integers(-1024, 3000, (slices, *SHAPE[1:])).astype(np.int16)
    affine = np.diag([SPACING[2], SPACING[1], SPACING[0], 1.0])
    affine[:3, 3] = (-80.5, -120.25, -310.0)
    return Volume(values, SPACING, affine, name, uid)


@pytest.fixture
def series(tmp_path):
    volume = made_volume()
    write_series(volume, tmp_path)
    return volume, tmp_path


def files(folder):
    return sorted(folder.glob("*.dcm"))


def change(path, **values):
    """Set elements of a file; None removes one."""
    header = pydicom.dcmread(path)
    for key, value in values.items():
        if value is None:
            delattr(header, key)
        else:
            setattr(header, key, value)
    header.save_as(path)


def test_what_was_written_is_read_with_its_anisotropic_spacing(series):
    volume, folder = series
    found = read_volume(folder)
    assert found.hounsfield.dtype == np.int16
    np.testing.assert_array_equal(found.hounsfield, volume.hounsfield)
    np.testing.assert_allclose(found.affine, volume.affine)
    np.testing.assert_allclose(found.spacing, SPACING)
    assert (found.name, found.series_uid, found.notes) == ("case", UID, ())


def test_one_file_of_a_series_stands_for_its_folder(series):
    volume, folder = series
    np.testing.assert_array_equal(read_volume(files(folder)[2]).hounsfield, volume.hounsfield)


def test_the_affine_maps_each_slice_to_the_place_in_its_header(series):
    found = read_volume(series[1])
    for number, path in enumerate(found.slices):
        header = pydicom.dcmread(path)
        assert found.image_uids[number] == header.SOPInstanceUID
        corner = found.affine @ (9, 11, number, 1)
        along_row, along_column = np.reshape(header.ImageOrientationPatient, (2, 3)).astype(float)
        rows, columns = header.PixelSpacing
        expected = (
            np.array(header.ImagePositionPatient, float) + 9 * columns * along_row + 11 * rows * along_column
        )
        np.testing.assert_allclose(corner[:3], expected)


def test_order_follows_positions_not_names_or_numbers(series):
    volume, folder = series
    for number, path in enumerate(files(folder)):
        change(path, InstanceNumber=100 - number)
        path.rename(folder / f"z{9 - number}.dcm")
    np.testing.assert_array_equal(read_volume(folder).hounsfield, volume.hounsfield)


def test_a_turned_patient_is_ordered_along_the_normal(series):
    volume, folder = series
    for number, path in enumerate(files(folder)):  # feet first and face down: the normal points to -z
        change(path, ImageOrientationPatient=[1, 0, 0, 0, -1, 0], ImagePositionPatient=[0, 0, -2.5 * number])
    found = read_volume(folder)
    np.testing.assert_array_equal(found.hounsfield, volume.hounsfield)
    np.testing.assert_allclose(found.affine[:3, 2], (0, 0, -2.5))


@pytest.mark.parametrize(
    ("slope", "intercept", "kind"), [(2, -500, np.int16), (0.5, -10.25, np.float32), (12, 0, np.float32)]
)
def test_slope_and_intercept_give_hounsfield_units(series, slope, intercept, kind):
    volume, folder = series
    for path in files(folder):
        change(path, RescaleSlope=slope, RescaleIntercept=intercept)
    found = read_volume(folder).hounsfield
    stored = volume.hounsfield.astype(np.float64) + 1024
    assert found.dtype == kind
    np.testing.assert_allclose(found, stored * slope + intercept)


@pytest.mark.parametrize("fractional", [0, 2])
def test_one_slice_of_fractions_makes_a_volume_of_them(series, fractional):
    whole = read_volume(series[1]).hounsfield
    change(files(series[1])[fractional], RescaleSlope=0.5, RescaleIntercept=-1024)
    mixed = read_volume(series[1]).hounsfield
    assert (whole.dtype, mixed.dtype) == (np.int16, np.float32)
    others = [number for number in range(len(whole)) if number != fractional]
    assert np.array_equal(mixed[others], whole[others])
    assert np.array_equal(mixed[fractional], (whole[fractional] + 1024) * np.float32(0.5) - 1024)


def test_duplicates_are_dropped_and_noted(series):
    volume, folder = series
    first = files(folder)[1]
    (folder / "copy.dcm").write_bytes(first.read_bytes())
    found = read_volume(folder)
    np.testing.assert_array_equal(found.hounsfield, volume.hounsfield)
    assert len(found.notes) == 1
    assert "1 duplicate" in found.notes[0]


def test_slices_along_the_body_are_read_and_noted(series):
    _, folder = series
    for number, path in enumerate(files(folder)):  # seen from the front, as a workstation reformats a series
        change(path, ImageOrientationPatient=[1, 0, 0, 0, 0, -1], ImagePositionPatient=[0, 2.5 * number, 0])
    found = read_volume(folder)
    assert found.spacing == pytest.approx(SPACING)
    (note,) = found.notes
    assert "do not lie across the body" in note


@pytest.mark.parametrize(("degrees", "notes"), [(30, 0), (43, 0), (47, 1)])
def test_slices_of_a_tilted_scanner_lie_across_the_body(series, degrees, notes):
    tilt = np.radians(degrees)
    for path in files(series[1]):
        change(path, ImageOrientationPatient=[1, 0, 0, 0, float(np.cos(tilt)), float(np.sin(tilt))])
    assert len(read_volume(series[1]).notes) == notes


def test_a_missing_slice_is_an_error_that_says_where(series):
    folder = series[1]
    files(folder)[2].unlink()
    with pytest.raises(UserError, match=r"1 slice is missing.*-307.50 and -302.50"):
        read_volume(folder)


@pytest.mark.parametrize(("away", "is_even"), [(0.2, True), (0.3, False)])
def test_places_of_slices_may_be_rounded_by_a_tenth_of_their_distance(series, away, is_even):
    folder = series[1]
    change(files(folder)[-1], ImagePositionPatient=[-80.5, -120.25, -310.0 + 4 * 2.5 + away])
    if is_even:
        assert read_volume(folder).spacing[0] == pytest.approx(2.5 + away / 4)
        return
    with pytest.raises(UserError, match="slices are unevenly spaced"):
        read_volume(folder)


def test_several_series_are_listed_and_one_is_chosen(series):
    volume, folder = series
    other = made_volume("1.2.3.4", slices=3, seed=1)
    write_series(other, folder / "second")
    with pytest.raises(
        UserError, match=r"2 CT series: .*5 slices.*1\.2\.3\.4 \(3 slices\).*--series largest"
    ):
        read_volume(folder)
    np.testing.assert_array_equal(read_volume(folder, series="largest").hounsfield, volume.hounsfield)
    np.testing.assert_array_equal(read_volume(folder, series="1.2.3.4").hounsfield, other.hounsfield)
    with pytest.raises(UserError, match=r"no series 9\.9"):
        read_volume(folder, series="9.9")
    np.testing.assert_array_equal(read_volume(files(folder)[0]).hounsfield, volume.hounsfield)


def test_other_files_and_other_modalities_are_skipped(series):
    volume, folder = series
    (folder / "LICENSE").write_text("text")
    (folder / ".DS_Store").write_bytes(b"x")
    write_series(made_volume("1.2.9"), folder / "chest-x-ray")
    for path in files(folder / "chest-x-ray"):
        change(path, Modality="DX")
    np.testing.assert_array_equal(read_volume(folder).hounsfield, volume.hounsfield)
    with pytest.raises(MissingDataError, match="no DICOM files of a CT series, only of the modality DX"):
        read_volume(folder / "chest-x-ray")


def test_numbers_that_are_no_hounsfield_units_are_noted(series):
    _, folder = series
    assert not read_volume(folder).notes
    for path in files(folder):
        change(path, RescaleIntercept=None, PixelRepresentation=0)
    (note,) = read_volume(folder).notes
    assert note.startswith("nothing is as dark as air: the lowest value is")


def test_padding_of_slices_is_not_taken_for_air(series):
    _, folder = series
    for path in files(folder):
        header = pydicom.dcmread(path)
        values = header.pixel_array.astype(np.int16)
        values -= values.min()
        values[:2] = -2000
        header.PixelData, header.PixelRepresentation = values.tobytes(), 1
        del header.RescaleIntercept
        header.save_as(path)
    (note,) = read_volume(folder).notes
    assert note.startswith("nothing is as dark as air: the lowest value is 0")


@pytest.mark.parametrize(("kind", "is_noted"), [("HU", False), ("US", False), ("MGML", True)])
def test_values_that_say_that_they_are_no_hounsfield_units_are_noted(series, kind, is_noted):
    for path in files(series[1]):
        change(path, RescaleType=kind)
    expected = ("the values are no Hounsfield units but of the type MGML: what is found means nothing",)
    assert read_volume(series[1]).notes == (expected if is_noted else ())


def test_a_single_slice_is_as_thick_as_it_says(tmp_path):
    write_series(made_volume(slices=1), tmp_path)
    found = read_volume(tmp_path)
    assert found.spacing == SPACING
    np.testing.assert_allclose(found.affine[:3, 2], (0, 0, 2.5))
    change(files(tmp_path)[0], SliceThickness=None)
    with pytest.raises(UserError, match="SliceThickness"):
        read_volume(tmp_path)


def test_compressed_pixels_that_can_be_decoded_are(series):
    volume, folder = series
    for path in files(folder):
        header = pydicom.dcmread(path)
        header.compress(uids.RLELossless)
        header.save_as(path)
    np.testing.assert_array_equal(read_volume(folder).hounsfield, volume.hounsfield)


@pytest.mark.parametrize("syntax", [uids.JPEGLossless, uids.HTJ2KLossless], ids=lambda uid: uid.name)
def test_compressed_pixels_that_cannot_be_decoded_name_the_plugin(series, syntax):
    if pixels.get_decoder(syntax).is_available:
        pytest.skip("a plugin for this syntax is installed")
    path = files(series[1])[3]
    header = pydicom.dcmread(path)
    header.PixelData = pydicom.encaps.encapsulate([b"\xff\xd8\xff\xd9"])
    header["PixelData"].VR = "OB"
    header.file_meta.TransferSyntaxUID = syntax
    header.save_as(path)
    with pytest.raises(
        UserError, match=r'is compressed \(.*\); to decode it, pip install "pylibjpeg\[all\]"'
    ):
        read_volume(series[1])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"PixelSpacing": None}, "no spacing: PixelSpacing is None"),
        ({"PixelSpacing": [0, 0.7]}, "no spacing"),
        ({"ImagePositionPatient": None}, "no place in the patient: ImagePositionPatient"),
        ({"ImageOrientationPatient": None}, "ImageOrientationPatient"),
        ({"ImageOrientationPatient": [1, 0, 0, 1, 0, 0]}, "no two unit vectors"),
        ({"Rows": 11}, r"0002\.dcm has 12x10 pixels, but 0001\.dcm has 11x10"),
        ({"NumberOfFrames": 2}, "one file for each slice"),
        ({"RescaleSlope": 0}, "RescaleSlope 0 and RescaleIntercept -1024, which give no Hounsfield units"),
        ({"RescaleSlope": "1e300"}, r"RescaleSlope 1e\+300 .*, which give no Hounsfield units"),
        ({"SamplesPerPixel": [1, 2]}, r"SamplesPerPixel is \[1, 2\], no whole number"),
        ({"Columns": [10, 7]}, r"Columns is \[10, 7\], no whole number"),
        ({"PixelSpacing": ["0.8"] * 900}, r"PixelSpacing is \[0.8, .*\.\.\."),
        ({"RescaleIntercept": ""}, "no Hounsfield units: RescaleIntercept is None"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_header_that_does_not_make_a_volume_is_named(series, values, words):
    change(files(series[1])[0], **values)
    with pytest.raises(UserError, match=words) as caught:
        read_volume(series[1])
    assert len(str(caught.value)) < 600


def test_a_number_of_a_slice_that_is_none_is_named(series):
    path = files(series[1])[2]
    content = path.read_bytes()
    assert content.count(b"IS\x02\x003 ") == 1
    path.write_bytes(content.replace(b"IS\x02\x003 ", b"IS\x02\x00x "))
    with pytest.raises(UserError, match=r"0003\.dcm is damaged \(InstanceNumber is .*, no whole number\)"):
        read_volume(series[1])


def test_a_slice_at_another_angle_is_named(series):
    change(files(series[1])[2], ImageOrientationPatient=[1, 0, 0, 0, 0, -1])
    with pytest.raises(UserError, match=r"0003.dcm lies at another angle"):
        read_volume(series[1])


def test_a_slice_with_pixels_of_another_size_is_named(series):
    change(files(series[1])[2], PixelSpacing=[0.8, 1.4])
    with pytest.raises(
        UserError, match=r"0003\.dcm has pixels of 0\.8x1\.4 mm, but 0001\.dcm has 0\.8x0\.7 mm"
    ):
        read_volume(series[1])


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("keyword", ["RescaleSlope", "RescaleIntercept"])
def test_a_slice_that_alone_has_no_rescaling_is_named(series, number, keyword):
    change(files(series[1])[number], **{keyword: None})
    with pytest.raises(UserError, match=rf"000{number + 1}\.dcm has no {keyword}, but 000.\.dcm has one"):
        read_volume(series[1])


def test_a_file_of_all_slices_is_answered_with_what_to_do(series):
    for path in files(series[1]):
        header = pydicom.dcmread(path)
        header.file_meta.MediaStorageSOPClassUID = header.SOPClassUID = "1.2.840.10008.5.1.4.1.1.2.1"
        header.save_as(path)
    with pytest.raises(
        MissingDataError, match="only of the modality CT with all slices in one file, which has"
    ):
        read_volume(series[1])


@pytest.mark.parametrize("kept", [400, 900, -60])
def test_truncated_files_are_named(series, kept):
    path = files(series[1])[4]
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"0005\.dcm"):
        read_volume(series[1])


@pytest.mark.parametrize(
    ("old", "new"), [(b"\x02\0\x02\0UI", b"\x02\0\x02\0UA"), (b".5.1.4.1.1.2\0", b".5.1.4.1.1.@\0")]
)
def test_a_damaged_beginning_is_one_line(series, old, new, recwarn):
    path = files(series[1])[1]
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(UserError):
        read_volume(path.parent, series="largest")
    assert not recwarn.list


def test_a_file_that_only_claims_to_be_dicom_is_named(series):
    (series[1] / "broken.dcm").write_bytes(b"\0" * 500)
    with pytest.raises(UserError, match=r"broken\.dcm is no DICOM file"):
        read_volume(series[1])


def test_a_folder_without_series_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(MissingDataError, match="no DICOM files"):
        read_volume(tmp_path)
    with pytest.raises(MissingDataError, match="no file or folder"):
        read_volume(tmp_path / "absent")
