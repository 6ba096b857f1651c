"""Patients with marked nodules: LIDC-IDRI's DICOM and XML, NIfTI volumes with masks, pictures with masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError, counted
from torchcaps.data import open_any
from torchcaps.data.folders import SUFFIXES, visible_folders

from ..nodules import Nodule, find_nodules, nodules_of_mask, read_annotations, series_uid_of
from ..volume import (
    NIFTI_SUFFIXES,
    Slice,
    Volume,
    list_series,
    load_series,
    read_nifti,
    read_nifti_mask,
    read_volume,
    scan_name,
)
from .negatives import cut_negatives
from .regions import LEAST_PIXELS, Cut, cut_regions

_MASK = "_mask"


class Found(NamedTuple):
    """The regions of a patient, and what was mended while reading, in words."""

    cuts: list[Cut]
    notes: tuple[str, ...] = ()


class Marked(NamedTuple):
    """A scan with its nodules, or one picture of several that show a nodule.

    Attributes:
        volume: The scan.
        nodules: In it; in a picture, the pieces of one.
        first: Number of the first one in the patient.
        picture: Number of a picture among those of its nodule; None for a scan.
    """

    volume: Volume
    nodules: list[Nodule]
    first: int = 0
    picture: int | None = None

    def everywhere(self) -> NDArray[np.bool_]:
        """The voxels of all nodules."""
        found = np.zeros(self.volume.hounsfield.shape, dtype=bool)
        for nodule in self.nodules:
            found[nodule.voxels.box.slices] |= nodule.voxels.inside
        return found


Patients = dict[str, Callable[[], Found]]  # a patient is read when it is called
Scans = dict[str, Callable[[], Iterator[Marked]]]  # of each patient
_Pairs = list[tuple[Path, Path]]  # images with their masks


def require_apart(source: Path, out: Path) -> None:
    """Raise where `out` lies among the patients: the next call would take it for one of them."""
    if out.resolve().is_relative_to(source.resolve()):
        raise UserError(f"{out} lies in {source}, whose folders are patients; choose an --out outside of it")


def find_patients(folder: Path, *, negatives: float = 0.0) -> Patients:
    """The patients in a folder, cut into regions: `negatives` without a nodule for each that shows one."""
    return {name: partial(_cut_patient, read, negatives) for name, read in find_scans(folder).items()}


def find_scans(folder: Path) -> Scans:
    """The patients in a folder: each folder of DICOM files with XML, or each group of files with masks."""
    if not folder.is_dir():
        raise MissingDataError(f"no folder at {folder}")
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    volumes = [path for path in files if path.name.lower().endswith(NIFTI_SUFFIXES)]
    if volumes:
        return _with_masks(volumes, _read_niftis, by_name=True)
    pictures = [path for path in files if path.suffix.lower() in SUFFIXES]
    if pictures:
        return _with_masks(pictures, _read_pictures, by_name=False)
    below = visible_folders(folder)
    places = below if below and not any(path.suffix.lower() == ".dcm" for path in files) else [folder]
    found: Scans = {place.name: partial(_read_dicom, place) for place in places}
    if places == [folder] and not files:
        raise MissingDataError(
            f"{folder} is empty; expected a folder of DICOM files and XML for each patient, "
            "or NAME.nii.gz with NAME_mask.nii.gz, or NAME.png with NAME_mask.png"
        )
    return found


def _with_masks(files: list[Path], read: Callable[[_Pairs], Iterator[Marked]], *, by_name: bool) -> Scans:
    """Images with their masks by patient: the name of a file, or what comes before its first underscore."""
    masks = {scan_name(path).removesuffix(_MASK): path for path in files if scan_name(path).endswith(_MASK)}
    groups: dict[str, list[tuple[Path, Path | None]]] = {}
    for path in sorted(files):
        if not scan_name(path).endswith(_MASK):
            patient = scan_name(path) if by_name else scan_name(path).partition("_")[0]
            groups.setdefault(patient, []).append((path, masks.get(scan_name(path))))
    return {patient: partial(_read_pairs, pairs, read) for patient, pairs in groups.items()}


def _read_pairs(
    pairs: list[tuple[Path, Path | None]], read: Callable[[_Pairs], Iterator[Marked]]
) -> Iterator[Marked]:
    whole = [(image, mask) for image, mask in pairs if mask is not None]
    if len(whole) < len(pairs):
        bare = next(image for image, mask in pairs if mask is None)
        raise UserError(f"{bare} has no mask {scan_name(bare)}{_MASK} beside it")
    return read(whole)


def _read_niftis(pairs: _Pairs) -> Iterator[Marked]:
    first = 0
    for image, mask in pairs:
        volume = read_nifti(image)
        nodules = nodules_of_mask(read_nifti_mask(mask, volume), volume)
        yield Marked(volume, nodules, first)
        first += len(nodules)


def _read_pictures(pairs: _Pairs) -> Iterator[Marked]:
    """Slices of nodules; those whose names agree up to the last underscore show one, in their order."""
    owners = [scan_name(image).rpartition("_")[0] for image, _ in pairs]
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
    for index, (image, path) in enumerate(pairs):
        volume = read_volume(image)
        mask = np.asarray(open_any(path).convert("L")) > 0
        if mask.shape != volume.hounsfield.shape[1:]:
            own, other = ("x".join(map(str, s)) for s in (mask.shape, volume.hounsfield.shape[1:]))
            raise UserError(f"{path} has {own} pixels, but its image has {other}")
        owner = owners[index]
        nodules = nodules_of_mask(mask[None], volume)
        yield Marked(volume, nodules, numbers[owner], picture=owners[:index].count(owner))


def _read_dicom(folder: Path) -> Iterator[Marked]:
    """All annotated CT series of a patient."""
    series = list_series(folder)
    files = sorted(folder.rglob("*.xml"))
    if not files:
        raise UserError(f"{folder} has no XML with annotations")
    uids = {path: series_uid_of(path) for path in files}
    if not any(uids.values()):
        raise UserError(f"{folder} has no XML with annotations of a CT series")
    first = 0
    for path in (path for path, uid in uids.items() if uid):
        volume, nodules = read_annotated(path, series, folder)
        yield Marked(volume, nodules, first)
        first += len(nodules)


def read_annotated(xml: Path, series: dict[str, list[Slice]], folder: Path) -> tuple[Volume, list[Nodule]]:
    """The series that an XML file is about, and its nodules; annotations of another series are an error."""
    annotations = read_annotations(xml)
    if annotations.series_uid not in series:
        held = ", ".join(series)
        raise UserError(f"{xml} annotates series {annotations.series_uid}, but {folder} holds {held}")
    volume = load_series(series[annotations.series_uid], folder)
    return volume, find_nodules(annotations, volume)


def _cut_patient(read: Callable[[], Iterator[Marked]], negatives: float) -> Found:
    cuts: list[Cut] = []
    notes: list[str] = []
    empty: list[Cut] = []
    for number, marked in enumerate(read()):
        own = _cut_nodules(marked)
        cuts += own
        due = int(negatives * len(cuts)) - len(empty)  # of all scans together: a slice may have one region
        empty += _cut_empty(marked, due, number)
        notes += [*marked.volume.notes, *_too_small(marked, own)]
    return Found(cuts + empty, tuple(notes))


def _too_small(marked: Marked, cuts: list[Cut]) -> Iterator[str]:
    """Which nodules of a scan, or whether the one of a picture, are in no region."""
    whole = len(marked.nodules) if marked.picture is None else min(1, len(marked.nodules))
    if missing := whole - len({cut.nodule for cut in cuts}):
        yield f"{counted(missing, 'nodule')} with fewer than {LEAST_PIXELS} pixels in every slice left out"


def _cut_nodules(marked: Marked) -> list[Cut]:
    volume, everything = marked.volume, marked.everywhere()
    cuts = []
    for offset, nodule in enumerate(marked.nodules):
        number = marked.first + (offset if marked.picture is None else 0)
        for region in cut_regions(volume, nodule, everything, key=f"{volume.name} {number}"):
            placed = replace(region, slice=region.slice + (marked.picture or 0))
            cuts.append(
                Cut(
                    placed,
                    nodule=number,
                    readers=nodule.readers,
                    diameter_mm=nodule.diameter_mm,
                    spacing=volume.spacing,
                    malignancy=nodule.malignancy,
                )
            )
    return cuts


def _cut_empty(marked: Marked, count: int, number: int) -> list[Cut]:
    """Regions without a nodule of the scan `number` of a patient."""
    if count < 1:
        return []
    volume = marked.volume
    regions = cut_negatives(volume, marked.everywhere(), count=count, key=f"{volume.name} {number}")
    return [Cut.without_nodule(region, volume.spacing) for region in regions]
