"""CT series from DICOM folders, in Hounsfield units, in their order along the body.

What is mended: order and duplicates. What is refused, with the file named: gaps, slices of different size,
spacing or orientation, series of which only some slices say how to get Hounsfield units, missing spacing,
truncated files, and compressed pixels that nothing installed can decode.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError, need, reason_of, shown

from .slice_order import Ordered, order_slices, volume_affine
from .volume import Volume, doubts

_PLUGINS = 'pip install "pylibjpeg[all]"'
_CT_SLICES = "1.2.840.10008.5.1.4.1.1.2"
_ALL_IN_ONE = f"{_CT_SLICES}."  # begins the kinds of files that hold all slices
DICOM_SUFFIXES = {".dcm", ".dicom", ".ima"}
_LARGEST = 1e6  # slope and intercept; no Hounsfield units come of larger ones, nor of slopes near 0
_SAME_ANGLE = 1e-3
_SAME_SPACING = 1e-3  # share of a spacing by which slices may differ
_HOUNSFIELD = {"HU", "US", ""}  # types of values; the second and third say nothing
_ACROSS = 0.7  # share of the normal along the body; scanners tilt by 30 degrees at most
_RESCALING = ("RescaleSlope", "RescaleIntercept")  # what makes Hounsfield units of pixels


class Slice(NamedTuple):
    """A DICOM file of one CT slice, without its pixels."""

    path: Path
    header: Any


def list_series(folder: Path) -> dict[str, list[Slice]]:
    """The CT slices in a folder and below it, by the UID of their series; other modalities are skipped."""
    found: dict[str, list[Slice]] = {}
    others: set[str] = set()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    for path in files:
        header = _read_header(path)
        if header is not None and _is_ct(header):
            if not {"Rows", "Columns", "SeriesInstanceUID"} <= set(header.dir()):
                raise UserError(f"{path} ends before its pixels; get it again")
            uid = str(header.SeriesInstanceUID)
            found.setdefault(uid, []).append(Slice(path, header))
        elif header is not None:
            others.add(_kind(header))
    if not found:
        there = f", only of the modality {', '.join(sorted(others))}" if others else ""
        raise MissingDataError(f"{folder} holds no DICOM files of a CT series{there}")
    return found


def _kind(header: Any) -> str:
    """What a file holds that is no CT slice."""
    modality = str(header.get("Modality", "unknown"))
    if not str(header.file_meta.get("MediaStorageSOPClassUID", "")).startswith(_ALL_IN_ONE):
        return modality
    return f"{modality} with all slices in one file, which has to be converted to single slices or to NIfTI"


def _is_ct(header: Any) -> bool:
    """Whether a file says, or does not deny, that it is a slice; half a file may lack what it would say."""
    kind = header.file_meta.get("MediaStorageSOPClassUID", _CT_SLICES)
    return kind == _CT_SLICES and header.get("Modality", "CT") == "CT"


def read_series(folder: Path, *, series: str | None = None) -> Volume:
    """The CT series in a folder; with several in it, `series` says which: a UID, or "largest"."""
    found = list_series(folder)
    return load_series(found[_choose(found, series, folder)], folder)


def series_of(path: Path) -> str | None:
    """The UID of the series that a DICOM file belongs to, where it says so."""
    header = _read_header(path)
    return None if header is None else str(header.get("SeriesInstanceUID", "")) or None


def _choose(found: dict[str, list[Slice]], series: str | None, folder: Path) -> str:
    if series == "largest":
        return max(found, key=lambda uid: len(found[uid]))
    if series is None and len(found) == 1:
        return next(iter(found))
    listed = ", ".join(f"{uid} ({len(slices)} slices)" for uid, slices in found.items())
    if series is None:
        raise UserError(
            f"{folder} holds {len(found)} CT series: {listed}; choose one by its UID or with --series largest"
        )
    if series not in found:
        raise UserError(f"{folder} has no series {series}; it holds {listed}")
    return series


def load_series(slices: Sequence[Slice], folder: Path) -> Volume:
    """The volume of the slices of one series."""
    slices = sorted(slices, key=lambda each: (_whole(each, "InstanceNumber", 0), each.path.name))
    first = slices[0].header
    for each in slices:
        _check_slice(each, slices[0])
    orientation = _orientation(slices[0])
    positions = np.array([_numbers(each, "ImagePositionPatient", 3) for each in slices])
    placed = order_slices(positions, orientation, str(folder))
    kept = [slices[number] for number in placed.order]
    pixel_spacing = _pixel_spacing(slices[0])
    affine = volume_affine(positions[placed.order[0]], orientation, pixel_spacing, _step(placed, slices[0]))
    hounsfield = _hounsfield(kept)
    dropped = [slices[number].path.name for number in placed.dropped]
    return Volume(
        hounsfield=hounsfield,
        spacing=(_distance(placed, slices[0]), *pixel_spacing),
        affine=affine,
        name=str(first.get("PatientID") or folder.name),
        series_uid=str(first.get("SeriesInstanceUID", "")) or None,
        slices=tuple(each.path for each in kept),
        image_uids=tuple(str(each.header.get("SOPInstanceUID", "")) for each in kept),
        notes=(*_notes(first, dropped, orientation), *doubts(hounsfield)),
    )


def _notes(header: Any, dropped: Sequence[str], orientation: NDArray[np.float64]) -> Iterator[str]:
    """What a user has to know of a series that was read."""
    if (kind := str(header.get("RescaleType") or "").strip()) not in _HOUNSFIELD:
        yield f"the values are no Hounsfield units but of the type {kind}: what is found means nothing"
    if dropped:
        yield f"{len(dropped)} duplicate slices dropped: {', '.join(dropped[:5])}"
    if abs(np.cross(*orientation)[2]) < _ACROSS:
        yield "the slices do not lie across the body: networks that learned from axial ones do not know them"


def _distance(placed: Ordered, only: Slice) -> float:
    """Between slices; a single slice is as thick as it says."""
    return placed.distance or _numbers(only, "SliceThickness", 1, must_be_positive=True)[0]


def _step(placed: Ordered, only: Slice) -> NDArray[np.float64]:
    return placed.step if placed.distance else placed.step * _distance(placed, only)


def _read_header(path: Path) -> Any | None:
    """The header of a DICOM file; None for a file that does not claim to be one."""
    pydicom = need("pydicom", "reading DICOM")
    with path.open("rb") as file:
        is_dicom = file.read(132)[128:] == b"DICM"
    if not is_dicom:
        if path.suffix.lower() in DICOM_SUFFIXES:
            raise UserError(f"{path} is no DICOM file, or its beginning is lost; get it again")
        return None
    with _damage_named(path):
        header = pydicom.dcmread(path, stop_before_pixels=True)
        for part in (header.file_meta, header):
            list(part.iterall())  # values are decoded when they are asked for
        return header


def _check_slice(each: Slice, first: Slice) -> None:
    size, wanted = ([_whole(s, key, 0) for key in ("Rows", "Columns")] for s in (each, first))
    if size != wanted:
        raise UserError(
            f"{each.path} has {size[0]}x{size[1]} pixels, but {first.path.name} has {wanted[0]}x{wanted[1]}"
        )
    if _whole(each, "NumberOfFrames", 1) > 1 or _whole(each, "SamplesPerPixel", 1) > 1:
        raise UserError(f"{each.path} is no grey single slice; write one file for each slice")
    if np.abs(_orientation(each) - _orientation(first)).max() > _SAME_ANGLE:
        raise UserError(
            f"{each.path} lies at another angle than {first.path.name}; remove what is not of the volume"
        )
    own, usual = _pixel_spacing(each), _pixel_spacing(first)
    if not np.allclose(own, usual, rtol=_SAME_SPACING, atol=0):
        raise UserError(
            f"{each.path} has pixels of {own[0]:g}x{own[1]:g} mm, but {first.path.name} has "
            f"{usual[0]:g}x{usual[1]:g} mm; remove what is not of the volume"
        )
    _check_same_rescaling(each, first)


def _check_same_rescaling(each: Slice, first: Slice) -> None:
    """Slices that name no intercept, between others that do, would be a thousand units too bright."""
    for keyword in _RESCALING:
        if (keyword in each.header) != (keyword in first.header):
            there, missing = (first, each) if keyword in first.header else (each, first)
            raise UserError(
                f"{missing.path} has no {keyword}, but {there.path.name} has one; get the series again"
            )


def _orientation(each: Slice) -> NDArray[np.float64]:
    found = np.array(_numbers(each, "ImageOrientationPatient", 6)).reshape(2, 3)
    if not np.allclose(found @ found.T, np.eye(2), atol=1e-2):
        raise UserError(f"{each.path}: ImageOrientationPatient {found.tolist()} are no two unit vectors")
    return found


def _pixel_spacing(each: Slice) -> tuple[float, float]:
    rows, columns = _numbers(each, "PixelSpacing", 2, must_be_positive=True)
    return rows, columns


def _whole(each: Slice, keyword: str, default: int) -> int:
    """A whole number from the header; `default` where it has none."""
    value = each.header.get(keyword)
    try:
        return int(value or default)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{each.path} is damaged ({keyword} is {shown(value)}, no whole number); get it again"
        ) from error


def _numbers(each: Slice, keyword: str, count: int, *, must_be_positive: bool = False) -> list[float]:
    """`count` finite numbers from the header; their absence is an error that names the file."""
    value = each.header.get(keyword)
    try:
        found = [float(part) for part in (value if count > 1 else [value])]
    except (TypeError, ValueError):
        found = []
    is_good = len(found) == count and np.isfinite(found).all() and (min(found) > 0 or not must_be_positive)
    if not is_good:
        other = "Hounsfield units" if keyword in _RESCALING else "place in the patient"
        what = "spacing" if must_be_positive else other
        raise UserError(
            f"{each.path} has no {what}: {keyword} is {shown(value)}; a volume cannot be made of it"
        )
    return found


def _hounsfield(slices: Sequence[Slice]) -> NDArray[np.int16] | NDArray[np.float32]:
    """Pixels times slope plus intercept; int16 where that is exact for all slices."""
    first = _rescaled(slices[0])
    volume = np.empty((len(slices), *first.shape), first.dtype)  # a list would double the memory
    volume[0] = first
    for number, each in enumerate(slices[1:], start=1):
        plane = _rescaled(each)
        if plane.dtype != volume.dtype:
            volume = volume.astype(np.float32, copy=False)
        volume[number] = plane
    return volume


def _rescaled(each: Slice) -> NDArray[Any]:
    pixels = _pixels(each)
    slope, intercept = _rescaling(each)
    values = pixels.astype(np.float64) * slope + intercept
    is_whole = slope.is_integer() and intercept.is_integer()
    fits = is_whole and values.min() >= -(1 << 15) and values.max() < 1 << 15
    return values.astype(np.int16 if fits else np.float32)


def _rescaling(each: Slice) -> tuple[float, float]:
    """Slope and intercept; pixels of a file that names none are Hounsfield units."""
    header = each.header
    slope = _numbers(each, "RescaleSlope", 1)[0] if "RescaleSlope" in header else 1.0
    intercept = _numbers(each, "RescaleIntercept", 1)[0] if "RescaleIntercept" in header else 0.0
    if not 1 / _LARGEST <= abs(slope) <= _LARGEST or abs(intercept) > _LARGEST:
        raise UserError(
            f"{each.path} has RescaleSlope {slope:g} and RescaleIntercept {intercept:g}, which give no "
            "Hounsfield units; get it again"
        )
    return slope, intercept


def _pixels(each: Slice) -> NDArray[Any]:
    pydicom = need("pydicom", "reading DICOM")
    with _damage_named(each.path):
        whole = pydicom.dcmread(each.path)
        _check_can_decode(whole, each.path)
        pixels: NDArray[Any] = whole.pixel_array
    return pixels


def _check_can_decode(whole: Any, path: Path) -> None:
    from pydicom.pixels import get_decoder

    syntax = whole.file_meta.TransferSyntaxUID
    if not syntax.is_compressed or syntax.name.startswith("Deflated"):
        return
    try:
        is_available = get_decoder(syntax).is_available
    except NotImplementedError:  # a syntax that no plugin knows
        is_available = False
    if not is_available:
        raise UserError(f"{path} is compressed ({syntax.name}); to decode it, {_PLUGINS}")


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Whatever pydicom says of a broken file becomes one error that names it; its warnings are kept quiet."""
    logger = logging.getLogger("pydicom")
    level = logger.level
    try:
        logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UserError:
        raise
    except Exception as error:  # pydicom raises many kinds for damaged files
        raise UserError(f"{path} is damaged ({reason_of(error)}); get it again") from error
    finally:
        logger.setLevel(level)
