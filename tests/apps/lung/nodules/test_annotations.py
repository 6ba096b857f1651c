"""The XML of LIDC-IDRI: outlines, what they enclose, and files that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from torchcaps.apps.lung.nodules import Annotations, Marking, Outline, read_annotations, trace_outline
from torchcaps.apps.lung.nodules.blob import marked_voxels, slice_at
from torchcaps.apps.lung.nodules.outline import fill_outline
from torchcaps.apps.lung.phantom.files import annotations_xml
from torchcaps.core import UserError

from apps.lung.ct import volume

pytest.importorskip("defusedxml")

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE = 'xmlns="http://www.nih.gov"'


def message(body, uid="1.2.3"):
    header = f"<ResponseHeader><SeriesInstanceUid>{uid}</SeriesInstanceUid></ResponseHeader>"
    return f"{HEAD}<LidcReadMessage {SPACE}>{header}{body}</LidcReadMessage>"


def roi(points, z=40.0, inclusion="TRUE"):
    edges = "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in points)
    return (
        f"<roi><imageZposition>{z}</imageZposition><imageSOP_UID>1.2</imageSOP_UID>"
        f"<inclusion>{inclusion}</inclusion>{edges}</roi>"
    )


def nodule(*rois, name="N1", malignancy="<malignancy>4</malignancy>"):
    return (
        f"<unblindedReadNodule><noduleID>{name}</noduleID><characteristics>{malignancy}</characteristics>"
        f"{''.join(rois)}</unblindedReadNodule>"
    )


def session(*nodules):
    return f"<readingSession>{''.join(nodules)}</readingSession>"


def read(tmp_path, text):
    path = tmp_path / "069.xml"
    path.write_text(text, encoding="utf-8")
    return read_annotations(path)


SQUARE = [(2, 3), (8, 3), (8, 7), (2, 7)]


def test_readers_nodules_outlines_and_scores_are_read(tmp_path):
    other = "<nonNodule><nonNoduleID>x</nonNoduleID></nonNodule>"
    found = read(
        tmp_path,
        message(
            session(nodule(roi(SQUARE), roi(SQUARE, 42.0))) + session(other) + session(nodule(roi([(4, 5)])))
        ),
    )
    assert (found.series_uid, found.num_readers) == ("1.2.3", 3)
    first, second = found.markings
    assert (first.reader, first.nodule_id, first.malignancy, first.is_small) == (0, "N1", 4, False)
    assert [outline.height for outline in first.outlines] == [40.0, 42.0]
    np.testing.assert_array_equal(first.outlines[0].points, SQUARE)
    assert second.reader == 2
    assert second.is_small


def test_a_nodule_whose_last_slice_has_a_point_alone_is_not_small(tmp_path):
    found = read(tmp_path, message(session(nodule(roi(SQUARE), roi([(4, 5)], 42.0)))))
    assert not found.markings[0].is_small
    ct = volume(np.zeros((5, 20, 20), np.int16))
    assert (
        marked_voxels(found.markings[0], ct).inside.sum() == 15
    )  # inside of the square; a point has no inside


def test_an_outline_that_does_not_say_whether_it_includes_does(tmp_path):
    text = message(session(nodule(roi(SQUARE)))).replace("<inclusion>TRUE</inclusion>", "")
    assert read(tmp_path, text).markings[0].outlines[0].is_inclusion


def test_an_outline_lies_just_outside_of_what_it_marks():
    filled, top, left = fill_outline(np.array(SQUARE))
    expected = np.zeros((5, 7), dtype=bool)
    expected[1:-1, 1:-1] = True
    np.testing.assert_array_equal(filled, expected)
    assert (top, left) == (3, 2)


@pytest.mark.parametrize("seed", range(12))
def test_as_many_pixels_are_inside_as_picks_theorem_counts(seed):
    random = np.random.default_rng(seed)
    angles = np.sort(random.uniform(0, 2 * np.pi, 9))
    radii = random.uniform(4, 20, 9)
    points = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1).round().astype(np.int64) + 30
    points = points[np.any(points != np.roll(points, 1, axis=0), axis=1)]
    following = np.roll(points, -1, axis=0)
    twice_area = abs((points[:, 0] * following[:, 1] - points[:, 1] * following[:, 0]).sum())
    on_border = np.gcd(*np.abs(following - points).T).sum()
    if not _is_simple(points):
        pytest.skip("rounding made the outline cross itself")
    assert fill_outline(points)[0].sum() == (twice_area - on_border) / 2 + 1


def _is_simple(points):
    """Whether no lattice point of the lines occurs twice and no two lines cross between them."""
    lines = list(zip(points, np.roll(points, -1, axis=0), strict=True))

    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    count = len(lines)
    for one in range(count):
        for two in range(one + 2, count - (one == 0)):
            (a, b), (c, d) = lines[one], lines[two]
            if side(a, b, c) * side(a, b, d) <= 0 and side(c, d, a) * side(c, d, b) <= 0:
                return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_tracing_and_filling_closes_notches_of_one_pixel_and_changes_nothing_else(seed):
    from scipy import ndimage

    random = np.random.default_rng(seed)
    field = ndimage.gaussian_filter(random.normal(size=(40, 40)), 3)
    labels, _ = ndimage.label(np.pad(field > field.std() / 2, 4))
    part = ndimage.binary_fill_holes(labels == np.bincount(labels.ravel())[1:].argmax() + 1)
    outline = trace_outline(part)
    filled, top, left = fill_outline(outline)
    found = np.zeros_like(part)
    found[top : top + filled.shape[0], left : left + filled.shape[1]] = filled
    closed = ndimage.binary_fill_holes(ndimage.binary_closing(part))
    assert (found & part).sum() == part.sum()
    np.testing.assert_array_equal(found, closed)
    steps = np.abs(np.diff(np.vstack([outline, outline[:1]]), axis=0)).max(1)
    assert (steps == 1).all()


def test_exclusions_are_cut_out_without_their_outline(tmp_path):
    whole, hole = [(1, 1), (13, 1), (13, 13), (1, 13)], [(4, 4), (9, 4), (9, 9), (4, 9)]
    found = read(tmp_path, message(session(nodule(roi(hole, 44.0, "FALSE"), roi(whole, 44.0)))))
    blob = marked_voxels(found.markings[0], volume(np.zeros((5, 20, 20), np.int16)))
    expected = np.ones((11, 11), dtype=bool)
    expected[5 - 2 : 9 - 2, 5 - 2 : 9 - 2] = False
    np.testing.assert_array_equal(blob.inside[0], expected)
    np.testing.assert_array_equal(blob.corner, (2, 2, 2))


def test_outlines_outside_of_the_volume_are_not_of_this_series(tmp_path):
    ct = volume(np.zeros((5, 20, 20), np.int16))
    high = read(tmp_path, message(session(nodule(roi(SQUARE, 99.0))))).markings[0]
    with pytest.raises(UserError, match=r"a slice at 99.0 mm.*not of this series"):
        marked_voxels(high, ct)
    wide = read(tmp_path, message(session(nodule(roi([(2, 2), (25, 2), (25, 9)]))))).markings[0]
    with pytest.raises(UserError, match="leaves the slice of 20x20"):
        marked_voxels(wide, ct)


def test_an_outline_belongs_to_the_slice_within_half_a_spacing():
    ct = volume(np.zeros((5, 20, 20), np.int16))  # slices at 40, 42 ... 48 mm
    assert [slice_at(height, ct) for height in (39.1, 40.9, 41.1, 48.9)] == [0, 0, 1, 4]
    for height in (38.9, 49.1):
        with pytest.raises(UserError, match="not of this series"):
            slice_at(height, ct)


@pytest.mark.parametrize("named", ["image 3", "image of a slice that was dropped", ""])
def test_an_outline_that_names_the_image_at_its_height_or_none_is_taken(named):
    ct = replace(volume(np.zeros((6, 20, 20), np.int16)), image_uids=tuple(f"image {k}" for k in range(6)))
    outline = Outline(46.0, True, np.array(SQUARE), named)
    assert marked_voxels(Marking(0, "a", (outline,), None), ct).corner[0] == 3


def test_an_outline_that_names_another_image_than_that_at_its_height_is_refused(tmp_path):
    ct = replace(volume(np.zeros((6, 20, 20), np.int16)), image_uids=tuple(f"image {k}" for k in range(6)))
    other = roi(SQUARE, z=46.0).replace("1.2", "image 1")
    (marked,) = read(tmp_path, message(session(nodule(other)))).markings
    with pytest.raises(UserError, match=r"a slice at 46\.0 mm, but the image that is named lies 4 mm away"):
        marked_voxels(marked, ct)


def test_heights_are_found_in_a_volume_whose_slices_run_downwards():
    up = volume(np.zeros((5, 20, 20), np.int16))
    affine = up.affine * [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, -1, 1], [1, 1, 1, 1]]
    down = replace(up, affine=affine)  # slices at 40, 38 ... 32 mm
    assert [slice_at(height, down) for height in (40.2, 37.9, 32.0)] == [0, 1, 4]


def test_outlines_may_reach_all_columns_and_rows_of_a_slice_that_is_not_square():
    ct = volume(np.zeros((5, 20, 30), np.int16))
    wide, high = ([(2, 2), (x, 2), (x, y), (2, y)] for x, y in ((29, 19), (19, 29)))
    assert marked_voxels(Marking(0, "a", (Outline(40.0, True, np.array(wide)),), None), ct) is not None
    with pytest.raises(UserError, match="leaves the slice of 20x30"):
        marked_voxels(Marking(0, "a", (Outline(40.0, True, np.array(high)),), None), ct)


def test_what_is_written_is_read_again(tmp_path):
    marking = Marking(1, "a<b&c", (Outline(-12.5, True, np.array(SQUARE)),), 3)
    found = read(tmp_path, annotations_xml(Annotations("1.9", 4, (marking,)), "x & y"))
    assert (found.series_uid, found.num_readers) == ("1.9", 4)
    assert (found.markings[0].reader, found.markings[0].nodule_id) == (1, "a<b&c")
    np.testing.assert_array_equal(found.markings[0].outlines[0].points, SQUARE)


BOMB = (
    HEAD
    + '<!DOCTYPE z [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    + f"<LidcReadMessage {SPACE}>&b;</LidcReadMessage>"
)
OUTSIDE = (
    HEAD
    + '<!DOCTYPE z [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    + f"<LidcReadMessage {SPACE}>&x;</LidcReadMessage>"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "declares entities or a DTD"),
        (OUTSIDE, "declares entities or a DTD"),
        ("<LidcReadMessage", "no readable XML"),
        ("<LidcReadMessage></LidcReadMessage>", "no CT annotations"),
        (f"<IdriReadMessage {SPACE}/>", "no CT annotations"),
        (message("", uid=""), "to which series"),
        (message(session(nodule(roi([("a", 1)])))), "no whole coordinates"),
        (message(session(nodule(roi([(2**70, 1)])))), "no whole coordinates"),
        (message(session(nodule(roi([])))), "has no points"),
        (message(session(nodule(roi(SQUARE, "nan")))), "has no points"),
    ],
    ids=["bomb", "entity", "broken", "namespace", "root", "series", "letters", "huge", "empty", "nan"],
)
def test_files_that_are_no_annotations_are_refused(tmp_path, text, words):
    with pytest.raises(UserError, match=words):
        read(tmp_path, text)
