"""Marks of a network in whole scans: those on nodules, and those beside them."""

from pathlib import Path

import numpy as np
import pytest

from torchcaps.apps.lung import whole_scans
from torchcaps.apps.lung.nodules import nodules_of_mask
from torchcaps.apps.lung.prepare import Marked
from torchcaps.apps.lung.segment import list_nodules
from torchcaps.apps.lung.whole_scans import Marks, choose_scans, count_marks, evaluate_scans, summarise_marks
from torchcaps.core import UserError
from torchcaps.train import load_run

from apps.lung.ct import volume
from apps.lung.runs import untrained_run


def box(*places):
    mask = np.zeros((8, 40, 40), bool)
    for depth, row, column in places:
        mask[depth : depth + 3, row : row + 6, column : column + 6] = True
    return mask


def marked(truth):
    scan = volume(np.full(truth.shape, -800, np.int16))
    return Marked(scan, nodules_of_mask(truth, scan))


def test_pieces_that_touch_no_nodule_are_false_and_nodules_without_a_piece_are_missed():
    scan = marked(box((0, 2, 2), (4, 20, 20), (1, 30, 2)))
    answer = box((0, 2, 4), (2, 20, 23), (4, 2, 30), (0, 30, 30)).astype(np.float16)
    assert count_marks(list_nodules(answer, scan.volume), scan) == Marks(nodules=3, found=2, false_marks=2)


def test_a_mark_in_the_bend_of_a_nodule_is_beside_it():
    bent = box((2, 10, 10), (2, 10, 16), (2, 10, 22), (2, 16, 10), (2, 22, 10))
    scan, answer = marked(bent), box((2, 21, 21)).astype(np.float16)
    assert count_marks(list_nodules(answer, scan.volume), scan) == Marks(1, 0, 1)


def test_two_pieces_on_one_nodule_are_no_false_marks():
    scan = marked(box((2, 10, 10)))
    answer = np.zeros((8, 40, 40), np.float16)
    answer[2:4, 10:12, 10:16] = answer[2:4, 14:16, 10:16] = 1
    found = list_nodules(answer, scan.volume)
    assert len(found.nodules) == 2
    assert count_marks(found, scan) == Marks(1, 1, 0)


def test_means_are_over_scans_and_over_nodules():
    found = summarise_marks({"a": [Marks(1, 1, 4), Marks(3, 2, 0)], "b": [Marks(2, 0, 5)]})
    assert (found["scans"], found["nodules"], found["found"]) == (3, 6, 3)
    assert found["false_marks"]["mean"] == pytest.approx(3)
    assert found["sensitivity"]["mean"] == pytest.approx(0.5)
    assert found["false_marks"]["low"] <= 3 <= found["false_marks"]["high"]
    with pytest.raises(UserError, match="no scans"):
        summarise_marks({})


def test_scans_are_segmented_whole(tmp_path, monkeypatch):
    truth, seen = box((2, 10, 10)), []

    def perfect(network, hounsfield):
        seen.append(hounsfield.shape)
        return truth.astype(np.float16)

    monkeypatch.setattr(whole_scans, "segment_volume", perfect)
    scans = {"a": lambda: iter([marked(truth)])}
    found = evaluate_scans(load_run(untrained_run(tmp_path)), scans)
    assert seen == [truth.shape]
    assert (found["found"], found["false_marks"]["mean"]) == (1, 0)


def test_a_patient_who_cannot_be_read_is_named_and_the_others_are_counted(tmp_path, monkeypatch):
    truth = box((2, 10, 10))

    def broken():
        raise UserError("slice 3 is damaged")

    monkeypatch.setattr(whole_scans, "segment_volume", lambda *_: truth.astype(np.float16))
    run = load_run(untrained_run(tmp_path))
    found = evaluate_scans(run, {"a": broken, "b": lambda: iter([marked(truth)])})
    assert (found["scans"], found["problems"]) == (1, {"a": "slice 3 is damaged"})
    with pytest.raises(UserError, match="none of 1 patients could be evaluated; a: slice 3 is damaged"):
        evaluate_scans(run, {"a": broken})


def test_a_folder_without_the_patients_is_refused():
    scans = {"a": lambda: iter(())}
    assert list(choose_scans(scans, {"a"}, Path("here"))) == ["a"]
    with pytest.raises(UserError, match="here has no patient b"):
        choose_scans(scans, {"a", "b"}, Path("here"))
