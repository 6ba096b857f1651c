"""NIfTI volumes and pictures as CT volumes."""

import numpy as np
import pytest
from PIL import Image

from torchcaps.apps.lung import read_volume, window
from torchcaps.apps.lung.volume import read_nifti_mask
from torchcaps.core import UserError

nibabel = pytest.importorskip("nibabel")

AFFINE = np.array([[0.7, 0, 0, -30], [0, 0.8, 0, 12], [0, 0, 2.5, -400], [0, 0, 0, 1]], dtype=float)


def save(path, values, affine=AFFINE):
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


def made(shape=(6, 5, 4), kind=np.int16):
    return np.random.default_rng(0).integers(-1000, 1000, shape).astype(kind)


@pytest.mark.parametrize("axes", ["RAS", "LPS", "LAS", "SRA"])
def test_every_voxel_keeps_its_place_in_the_patient(tmp_path, axes):
    image = nibabel.Nifti1Image(made(), AFFINE)
    turn = nibabel.orientations.ornt_transform(
        nibabel.orientations.io_orientation(AFFINE), nibabel.orientations.axcodes2ornt(axes)
    )
    nibabel.save(image.as_reoriented(turn), tmp_path / "case.nii.gz")
    volume = read_volume(tmp_path / "case.nii.gz")
    assert volume.name == "case"
    np.testing.assert_allclose(volume.spacing, (2.5, 0.8, 0.7), rtol=1e-6)
    for index in np.ndindex(image.shape):
        left, back, up = -(AFFINE @ (*index, 1))[0], -(AFFINE @ (*index, 1))[1], (AFFINE @ (*index, 1))[2]
        column, row, number, _ = np.linalg.solve(volume.affine, (left, back, up, 1)).round().astype(int)
        assert volume.hounsfield[number, row, column] == image.dataobj[index]


def test_slices_run_upwards_and_rows_to_the_back(tmp_path):
    volume = read_volume(save(tmp_path / "a.nii", made()))
    assert (np.diag(volume.affine)[:3] > 0).all()


@pytest.mark.parametrize("name", ["head.2.nii", "head.2.nii.gz", "head.2.NII", "head.2.NII.GZ"])
def test_a_volume_is_called_as_its_file_without_the_ending(tmp_path, name):
    assert read_volume(save(tmp_path / name, made())).name == "head.2"


def test_numbers_keep_their_kind(tmp_path):
    assert read_volume(save(tmp_path / "a.nii", made())).hounsfield.dtype == np.int16
    assert read_volume(save(tmp_path / "b.nii", made(kind=np.float32) + 0.5)).hounsfield.dtype == np.float32


def test_masks_must_have_size_and_place_of_their_volume(tmp_path):
    volume = read_volume(save(tmp_path / "a.nii", made()))
    mask = (made() > 500).astype(np.uint8)
    good = read_nifti_mask(save(tmp_path / "m.nii", mask), volume)
    assert good.sum() == mask.sum()
    with pytest.raises(UserError, match="3x5x6 voxels, but its volume has 4x5x6"):
        read_nifti_mask(save(tmp_path / "n.nii", mask[:, :, :3]), volume)
    moved = AFFINE.copy()
    moved[0, 3] += 5
    with pytest.raises(UserError, match="lies elsewhere"):
        read_nifti_mask(save(tmp_path / "o.nii", mask, moved), volume)


def test_a_mask_of_other_spacing_or_angle_is_refused_though_its_numbers_are_near(tmp_path):
    values, own = made((300, 40, 4)), np.diag([-1, -1, 1, 1]) @ AFFINE  # in the order of DICOM's axes
    volume = read_volume(save(tmp_path / "a.nii", values, own))
    wider, turned, rounded, beside = own.copy(), own.copy(), own + 1e-4, own.copy()
    wider[0, 0] -= 0.05  # 15 mm at the last column
    turned[1, 0] = 0.05
    for affine in (wider, turned):
        with pytest.raises(UserError, match="lies elsewhere"):
            read_nifti_mask(save(tmp_path / "m.nii", (values > 0).astype(np.uint8), affine), volume)
    beside[0, 3] += 0.3  # less than half a column, for all columns alike
    for affine in (rounded, beside):
        assert read_nifti_mask(save(tmp_path / "n.nii", (values > 0).astype(np.uint8), affine), volume).any()


@pytest.mark.parametrize(("unit", "millimetres"), [("meter", 1000), ("micron", 0.001), ("unknown", 1)])
def test_places_are_millimetres_whatever_unit_the_header_names(tmp_path, unit, millimetres):
    image = nibabel.Nifti1Image(made(), np.diag([1 / millimetres] * 3 + [1]) @ AFFINE)
    image.header.set_xyzt_units(unit)
    nibabel.save(image, tmp_path / "a.nii")
    volume = read_volume(tmp_path / "a.nii")
    assert volume.spacing == pytest.approx((2.5, 0.8, 0.7))
    mask = save(tmp_path / "m.nii", (made() > 500).astype(np.uint8))
    assert np.array_equal(read_nifti_mask(mask, volume), volume.hounsfield > 500)


def test_a_fourth_axis_of_one_volume_is_left_out(tmp_path):
    volume = read_volume(save(tmp_path / "a.nii.gz", made((6, 5, 4, 1))))
    assert np.array_equal(volume.hounsfield, read_volume(save(tmp_path / "b.nii.gz", made())).hounsfield)


def test_slices_of_a_tilted_scanner_are_as_far_apart_as_their_planes(tmp_path):
    tilted = AFFINE.copy()
    tilted[1, 2] = 2.5 * np.tan(np.radians(20))  # each slice lies further back than the one below
    volume = read_volume(save(tmp_path / "a.nii", made(), tilted))
    assert volume.spacing == pytest.approx((2.5, 0.8, 0.7))
    assert np.prod(volume.spacing) == pytest.approx(abs(np.linalg.det(volume.affine)))


def test_a_volume_without_spacing_is_refused(tmp_path):
    image = nibabel.Nifti1Image(made(), AFFINE)
    image.header["pixdim"][1:4] = 0
    raw = bytearray(image.to_bytes())
    raw[80:92] = bytes(12)  # pixdim[1:4]
    (tmp_path / "a.nii").write_bytes(raw)
    with pytest.raises(UserError, match="no spacing"):
        read_volume(tmp_path / "a.nii")


def test_voxels_that_are_no_numbers_are_air_and_noted(tmp_path):
    values = made().astype(np.float32)
    values[0, 0, 0], values[1, 1, 1] = np.nan, np.inf
    volume = read_volume(save(tmp_path / "a.nii", values))
    assert np.isfinite(volume.hounsfield).all()
    assert np.count_nonzero(volume.hounsfield == -1000) == 2
    assert "2 voxels are no finite numbers" in volume.notes[0]


def test_damaged_and_strange_files_are_named(tmp_path):
    for name, signs in (("a", (1, 1, 1, 1)), ("e", (-1, -1, 1, 1))):
        path = save(tmp_path / f"{name}.nii", made(), np.diag(signs) @ AFFINE)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(UserError, match=rf"{name}\.nii is damaged"):
            read_volume(path)
    (tmp_path / "b.nii.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match="cannot be read as NIfTI"):
        read_volume(tmp_path / "b.nii.gz")
    with pytest.raises(UserError, match=r"f\.nii holds no finite number at all"):
        read_volume(save(tmp_path / "f.nii", np.full((3, 3, 3), np.nan, np.float32)))
    with pytest.raises(UserError, match="one volume of three axes"):
        read_volume(save(tmp_path / "c.nii", made((3, 3, 3, 2))))
    (tmp_path / "d.doc").write_text("")
    with pytest.raises(UserError, match="is none of"):
        read_volume(tmp_path / "d.doc")


def test_damage_inside_a_compressed_file_is_found_by_its_checksum(tmp_path):
    content = bytearray(save(tmp_path / "a.nii.gz", made()).read_bytes())
    content[-8] ^= 1  # of the checksum: what stands before it can be decompressed
    (tmp_path / "a.nii.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.nii\.gz is damaged .*CRC"):
        read_volume(tmp_path / "a.nii.gz")


@pytest.mark.parametrize(
    ("row", "column", "number"), [(0, 0, 1e30), (1, 1, 1e-30), (0, 3, 1e30)], ids=["coarse", "fine", "far"]
)
def test_a_place_that_no_voxel_has_is_damage(tmp_path, row, column, number):
    affine = AFFINE.copy()
    affine[row, column] = number
    save(tmp_path / "a.nii", made(), affine)
    with pytest.raises(UserError, match=r"a has voxels of .* mm: its header is damaged"):
        read_volume(tmp_path / "a.nii")


def test_a_unit_of_length_that_nobody_knows_is_damage(tmp_path):
    path = save(tmp_path / "a.nii", made())
    content = bytearray(path.read_bytes())
    content[123] = 7  # xyzt_units
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.nii is damaged"):
        read_volume(path)


def test_a_picture_larger_than_any_slice_is_refused(tmp_path):
    Image.new("L", (2048, 4)).save(tmp_path / "a.png")
    assert read_volume(tmp_path / "a.png").hounsfield.shape == (1, 4, 2048)
    Image.new("L", (4, 2049)).save(tmp_path / "b.png")
    with pytest.raises(UserError, match=r"b\.png has 4x2049 pixels, more than a slice of a CT"):
        read_volume(tmp_path / "b.png")


def test_a_picture_is_a_slice_that_knows_no_millimetres(tmp_path):
    grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(grey).save(tmp_path / "a.png")
    volume = read_volume(tmp_path / "a.png")
    assert volume.hounsfield.shape == (1, 16, 16)
    np.testing.assert_array_equal((window(volume.hounsfield[0]) * 255).round(), grey)
    assert volume.spacing is None
    with pytest.raises(UserError, match="a has no spacing"):
        _ = volume.millimetres


def test_the_window_is_linear_between_its_ends_and_flat_beyond():
    np.testing.assert_allclose(window(np.array([-2000, -1000, -300, 400, 900])), [0, 0, 0.5, 1, 1])


def test_what_nibabel_mends_of_a_header_is_not_logged(tmp_path, capfd, recwarn):
    path = save(tmp_path / "a.nii", np.full((3, 3, 3), 1e300))
    content = bytearray(path.read_bytes())
    content[252:254] = b"\x7f\x7f"  # the code of a place in the patient, which is not known
    path.write_bytes(content)
    with pytest.raises(UserError, match="holds no finite number at all"):
        read_volume(path)
    assert capfd.readouterr().err == ""
    assert not recwarn.list


@pytest.mark.parametrize("kind", [np.complex64, np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])])
def test_voxels_that_are_no_real_numbers_are_refused(tmp_path, kind):
    with pytest.raises(UserError, match=r"a\.nii holds .*; a CT volume holds numbers"):
        read_volume(save(tmp_path / "a.nii", np.zeros((3, 3, 3), kind)))
