"""The drawn world: the same for the same seed, valid as files, and hard enough."""

import numpy as np
import pytest

from torchcaps.apps.lung.nodules import find_nodules, read_annotations
from torchcaps.apps.lung.phantom import (
    Protocol,
    draw_cuts,
    draw_empty_cuts,
    draw_patient,
    read_patient,
    scan_patient,
    write_phantom,
)
from torchcaps.apps.lung.phantom.readers import draw_readings
from torchcaps.apps.lung.phantom.scanner import Grid, _share, add_noise, scan_slice
from torchcaps.apps.lung.phantom.vessels import grow_vessels, paint_tubes
from torchcaps.apps.lung.volume import read_volume
from torchcaps.core import UserError

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("defusedxml")

SMALL = Protocol(size=128, slices=8)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    (folder,) = write_phantom(tmp_path_factory.mktemp("phantom"), 1, seed=3, protocol=SMALL)
    return folder


def test_the_same_seed_draws_the_same_patient_and_another_seed_another():
    first, again, other = (
        scan_patient(draw_patient(0, seed), Protocol(size=64, slices=8), "1") for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.hounsfield, again.hounsfield)
    assert (first.hounsfield != other.hounsfield).any()


def test_files_hold_what_the_scanner_saw(written):
    found = read_volume(written)
    patient = draw_patient(0, 3, reach=SMALL.reach)
    drawn = scan_patient(patient, SMALL, found.series_uid)
    np.testing.assert_array_equal(found.hounsfield, drawn.hounsfield)
    np.testing.assert_allclose(found.affine, drawn.affine, atol=1e-6)


def test_every_file_is_a_ct_slice_with_its_required_elements(written):
    files = [pydicom.dcmread(path) for path in sorted(written.glob("*.dcm"))]
    assert len({file.SOPInstanceUID for file in files}) == len(files) == SMALL.slices
    assert len({file.SeriesInstanceUID for file in files}) == 1
    for file in files:
        assert file.SOPClassUID == pydicom.uid.CTImageStorage == file.file_meta.MediaStorageSOPClassUID
        assert file.Modality == "CT"
        assert pydicom.uid.UID(file.SOPInstanceUID).is_valid
        for keyword in (
            "PatientID",
            "StudyDate",
            "FrameOfReferenceUID",
            "RescaleType",
            "ImageType",
            "HighBit",
        ):
            assert keyword in file


def test_the_xml_gives_the_nodules_that_the_readers_drew(written):
    volume = read_volume(written)
    annotations = read_annotations(written / "readers.xml")
    assert annotations.series_uid == volume.series_uid
    assert annotations.num_readers == 4
    patient = draw_patient(0, 3, reach=SMALL.reach)
    drawn = find_nodules(read_patient(patient, SMALL, volume.series_uid), volume)
    found = find_nodules(annotations, volume)
    assert len(found) == len(drawn) > 0
    for one, two in zip(found, drawn, strict=True):
        np.testing.assert_array_equal(one.voxels.inside, two.voxels.inside)
        np.testing.assert_array_equal(one.voxels.corner, two.voxels.corner)
    largest = max(patient.nodules, key=lambda nodule: nodule.radius)
    places = [(volume.affine @ (*nodule.voxels.middle[::-1], 1))[:3] for nodule in found]
    assert min(np.linalg.norm(place - largest.centre) for place in places) < 6


def test_patients_that_are_there_are_kept(written):
    before = {path: path.stat().st_mtime_ns for path in written.iterdir()}
    write_phantom(written.parent, 1, seed=3, protocol=SMALL)
    assert before == {path: path.stat().st_mtime_ns for path in written.iterdir()}


def test_tissues_have_their_hounsfield_units():
    patient = draw_patient(1, 0)
    image = scan_slice(patient, Grid(-190.0, -190.0, 0.0, 6.0, (64, 64)), 2.5)
    assert image.min() == -1000.0
    chest = patient.chest
    depth = chest.lung_depth(Grid(-190.0, -190.0, 0.0, 6.0, (64, 64)).points(slice(0, 64), slice(0, 64), 0.0))
    assert -930 < np.median(image[depth < -8]) < -750
    assert 250 < image.max() < 500  # bone
    assert 20 < np.median(image[(depth > 4) & (image > 0)]) < 60  # muscle and heart


def test_noise_has_the_deviation_that_was_asked_for():
    noise = add_noise(np.full((300, 300), 40.0), np.random.default_rng(0), 25.0) - 40
    assert noise.std() == pytest.approx(25, rel=0.03)
    assert np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1] == pytest.approx(4 / 6, abs=0.02)


def test_a_pixel_on_a_surface_is_half_of_each_side():
    depths = np.array([-2.0, -0.5, 0.0, 0.25, 0.5, 2.0])  # millimetres, negative inside
    assert _share(depths, 1.0).tolist() == [1, 1, 0.5, 0.25, 0, 0]


def test_branches_keep_the_cubes_of_their_radii():
    tubes = grow_vessels(np.random.default_rng(0), np.zeros(3), 1.0)
    joints = 0
    for tube in tubes[:60]:
        children = tubes[(tubes[:, :3] == tube[3:6]).all(1)]
        if len(children) == 2:
            joints += 1
            assert (children[:, 6] ** 3).sum() == pytest.approx(tube[6] ** 3)
    assert joints > 20


def test_a_tube_is_painted_within_its_radius_of_the_line_between_its_ends():
    begin, end, radius = np.array([2.0, 3.0, -4.0]), np.array([9.0, 5.0, 6.0]), 2.0
    image = np.full((30, 40), -1000.0)
    tubes = np.array([[*begin, *end, radius]])
    paint_tubes(image, tubes, level=0.0, corner=(-3.0, -2.0, 1.0), spacing=0.5, blur=1e-6)
    along = np.linspace(begin, end, 2001)
    for row, column in np.ndindex(image.shape):
        place = np.array([-3.0 + 0.5 * column, -2.0 + 0.5 * row, 1.0])
        distance = np.linalg.norm(along - place, axis=1).min()
        if abs(distance - radius) > 0.01:
            assert (image[row, column] == 0) == (distance < radius)


@pytest.fixture(scope="module")
def cuts():
    return {number: draw_cuts(number, 0) for number in range(2)}


def test_regions_come_without_files_and_show_a_nodule_each(cuts):
    found = [cut for some in cuts.values() for cut in some]
    assert len(found) > 4
    for cut in found:
        assert cut.region.image.shape == (128, 128) == cut.region.mask.shape
        assert cut.region.mask.sum() >= 8
        assert set(np.unique(cut.region.mask)) <= {0, 1}
    again = draw_cuts(1, 0)
    np.testing.assert_array_equal(again[0].region.image, cuts[1][0].region.image)
    assert (draw_cuts(1, 1)[0].region.image != cuts[1][0].region.image).any()


def test_brightness_alone_does_not_tell_nodules(cuts):
    """The best threshold of all, inside of regions, is far from the readers."""
    images = np.stack([cut.region.image for some in cuts.values() for cut in some])
    masks = np.stack([cut.region.mask for some in cuts.values() for cut in some]) > 0
    scores = []
    for level in range(0, 256, 8):
        marked = images > level
        scores.append(2 * (marked & masks).sum() / (marked.sum() + masks.sum()))
    assert max(scores) < 0.2


def test_readers_disagree_but_mean_the_same_nodule():
    scores = []
    for number in range(4):
        patient = draw_patient(number, 0)
        readings = [each for reader in draw_readings(patient) for each in reader]
        for nodule in patient.nodules:
            grid = Grid(nodule.centre[1] - 20, nodule.centre[0] - 20, nodule.centre[2], 0.4, (100, 100))
            masks = [each.mask(patient, grid) for each in readings if each.nodule is nodule]
            assert masks
            for one in range(len(masks)):
                for two in range(one):
                    total = masks[one].sum() + masks[two].sum()
                    scores.append(2 * (masks[one] & masks[two]).sum() / max(total, 1))
    assert 0.6 < np.mean(scores) < 0.9


def test_even_who_knows_the_surface_of_every_nodule_does_not_draw_as_the_readers_do():
    """A bound for networks, which have to find the surface first."""
    scores = []
    for number in range(12):
        patient = draw_patient(number, 0)
        readings = [each for reader in draw_readings(patient) for each in reader]
        for nodule in patient.nodules:
            grid = Grid(nodule.centre[1] - 25, nodule.centre[0] - 25, nodule.centre[2], 0.7, (72, 72))
            masks = [each.mask(patient, grid) for each in readings if each.nodule is nodule]
            agreed = np.mean(masks, axis=0) >= 0.5
            points = grid.points(slice(0, 72), slice(0, 72), grid.height)
            known = (nodule.depth(points) < 0) & (patient.chest.lung_depth(points) < 1.5)
            scores.append(2 * (known & agreed).sum() / max(known.sum() + agreed.sum(), 1))
    assert 0.75 < np.mean(scores) < 0.95


def test_scans_that_make_no_sense_are_refused():
    with pytest.raises(UserError, match="at least 64 pixels"):
        Protocol(size=32)


def test_regions_without_a_nodule_show_soft_tissue_and_leave_the_others_as_they_were(cuts):
    empty = draw_empty_cuts(1, 0, 3)
    assert len(empty) == 3
    for cut in empty:
        assert cut.nodule is None
        assert not cut.region.mask.any()
        assert (
            np.percentile(cut.region.image, 1) < 60 < np.percentile(cut.region.image, 99)
        )  # lung and tissue
    np.testing.assert_array_equal(draw_empty_cuts(1, 0, 3)[2].region.image, empty[2].region.image)
    np.testing.assert_array_equal(draw_cuts(1, 0)[0].region.image, cuts[1][0].region.image)
