"""What a network marks in whole scans: how many nodules it finds, and how many marks lie beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torchcaps.core import Plain, UserError, evaluating
from torchcaps.train import Run

from .prepare import Marked, Scans
from .report import bootstrap_mean
from .segment import NodulesFound, SliceNetwork, list_nodules, segment_volume, slice_network


class Marks(NamedTuple):
    """Nodules of a scan, those of which at least one voxel was marked, and pieces that touch none."""

    nodules: int
    found: int
    false_marks: int


def count_marks(found: NodulesFound, marked: Marked) -> Marks:
    """Compare the pieces of a predicted mask with the nodules of the scan."""
    hits: set[int] = set()
    touched = 0
    for nodule in marked.nodules:
        labels = found.labels[nodule.voxels.box.slices]
        pieces = set(np.unique(labels[nodule.voxels.inside]).tolist()) - {0}
        touched += bool(pieces)
        hits |= pieces
    return Marks(len(marked.nodules), touched, len(found.nodules) - len(hits))


def evaluate_scans(
    run: Run, scans: Scans, *, on_scan: Callable[[int, int], None] = lambda done, planned: None
) -> Plain:
    """Found nodules and false marks in the whole scans of patients, as plain data.

    A patient who cannot be read is named under `problems` and does not stop the others.

    Args:
        run: A segmentation run.
        scans: Of the patients; a picture counts as a scan of one slice.
        on_scan: Told how many patients are done, and how many there are.
    """
    network = slice_network(run)
    counted: dict[str, list[Marks]] = {}
    problems: dict[str, str] = {}
    with evaluating(run.model):
        for done, (name, read) in enumerate(scans.items(), start=1):
            try:
                counted[name] = [_marks_in(network, marked) for marked in read()]
            except UserError as error:
                problems[name] = str(error)
            on_scan(done, len(scans))
    if problems and not counted:
        name, reason = next(iter(problems.items()))
        raise UserError(f"none of {len(scans)} patients could be evaluated; {name}: {reason}")
    return {**summarise_marks(counted), "problems": problems}


def _marks_in(network: SliceNetwork, marked: Marked) -> Marks:
    probability = segment_volume(network, marked.volume.hounsfield)
    return count_marks(list_nodules(probability, marked.volume), marked)


def summarise_marks(counted: Mapping[str, list[Marks]]) -> Plain:
    """Means over scans and over nodules, with intervals from drawing patients."""
    every = [marks for some in counted.values() for marks in some]
    if not every:
        raise UserError("there are no scans to evaluate")
    marks = {name: [float(each.false_marks) for each in some] for name, some in counted.items()}
    hits = {
        name: [1.0] * sum(each.found for each in some)
        + [0.0] * sum(each.nodules - each.found for each in some)
        for name, some in counted.items()
    }
    return {
        "scans": len(every),
        "nodules": sum(each.nodules for each in every),
        "found": sum(each.found for each in every),
        "false_marks": bootstrap_mean(marks)._asdict(),
        "sensitivity": bootstrap_mean(hits)._asdict(),
        "by_patient": {name: [each._asdict() for each in some] for name, some in counted.items()},
    }


def choose_scans(scans: Scans, patients: set[str], folder: Path) -> Scans:
    """The scans of some patients; one that is not there is an error."""
    missing = sorted(patients - scans.keys())
    if missing:
        raise UserError(f"{folder} has no patient {missing[0]}; give the folder that was prepared")
    return {name: scans[name] for name in sorted(patients)}
