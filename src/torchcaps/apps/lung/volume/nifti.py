"""CT volumes and masks from NIfTI files."""

from __future__ import annotations

import gzip
import logging
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError, need, reason_of

from .volume import Volume, doubts

NIFTI_SUFFIXES = (".nii", ".nii.gz")
_TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])  # NIfTI counts millimetres to the right and to the front
_MOST_VOXELS = 1 << 31
_AIR = -1000  # Hounsfield units
_PIECE = 1 << 24  # bytes that are read at once
_MILLIMETRES = {"meter": 1e3, "micron": 1e-3}  # what a header does not name is in millimetres


class _Loaded(NamedTuple):
    """What a file holds, with its axes in the order left, posterior, superior; `axes` are those it has."""

    values: NDArray[Any]
    affine: NDArray[np.float64]
    axes: str


def read_nifti(path: Path) -> Volume:
    """The CT volume in a NIfTI file, turned so that its axes run as those of axial DICOM slices."""
    loaded = _load(path)
    values, notes = _without_holes(_narrow(loaded.values), path)
    spacing = _spacing(loaded.affine)
    notes += doubts(values)
    return Volume(values, spacing, loaded.affine, scan_name(path), notes=notes, axes=loaded.axes)


def _affine(image: Any) -> NDArray[np.float64]:
    """From voxels to millimetres of the patient, whatever unit of length the header names."""
    scale = _MILLIMETRES.get(image.header.get_xyzt_units()[0], 1.0)
    return np.diag([scale, scale, scale, 1.0]) @ _TO_LPS @ np.asarray(image.affine, dtype=np.float64)


def _spacing(affine: NDArray[np.float64]) -> tuple[float, float, float]:
    """Millimetres between slices, rows and columns; slices of a tilted scanner are moved along each other."""
    column, row, step = affine[:3, :3].T
    normal = np.cross(column, row)
    apart = abs(step @ normal) / np.linalg.norm(normal)
    return float(apart), float(np.linalg.norm(row)), float(np.linalg.norm(column))


def read_nifti_mask(path: Path, volume: Volume) -> NDArray[np.bool_]:
    """Where the mask in a NIfTI file is not 0; one that does not fit the volume is an error."""
    loaded = _load(path)
    mask = loaded.values != 0
    if mask.shape != volume.hounsfield.shape:
        raise UserError(f"{path} has {_shape(mask)} voxels, but its volume has {_shape(volume.hounsfield)}")
    # small differences grow over hundreds of voxels, so places are compared and not the numbers
    last = np.subtract(volume.hounsfield.shape[::-1], 1)
    corners = np.array([[*corner, 1] for corner in product(*((0, end) for end in last))])
    apart = np.linalg.norm(corners @ (loaded.affine - volume.affine).T, axis=1)
    if not apart.max() <= min(volume.millimetres) / 2:
        raise UserError(f"{path} lies elsewhere in the patient than its volume: their affines differ")
    return mask


def _load(path: Path) -> _Loaded:
    nibabel = need("nibabel", "reading NIfTI")
    logging.getLogger("nibabel.global").setLevel(logging.CRITICAL)  # it logs what it mends of a header
    try:
        _check_stream(path)
        with nibabel.openers.Opener(path) as file:
            image: Any = nibabel.squeeze_image(nibabel.load(path))  # some programs write a fourth axis of 1
            raw = type(image.header).from_fileobj(file, check=False)  # a checked one has spacing 1 for 0
        _check_header(image, raw, path)
        own = nibabel.orientations.io_orientation(image.affine)
        wanted = nibabel.orientations.axcodes2ornt("LPS")
        turned = image.as_reoriented(nibabel.orientations.ornt_transform(own, wanted))
        values, affine = np.asarray(turned.dataobj), _affine(turned)
    except UserError:
        raise
    except Exception as error:  # nibabel raises many kinds for damaged files
        raise UserError(
            f"{path} is damaged or cannot be read as NIfTI ({reason_of(error)}); get it again"
        ) from error
    if values.dtype.kind not in "iufb":
        raise UserError(f"{path} holds {values.dtype}; a CT volume holds numbers")
    axes = "".join(nibabel.orientations.ornt2axcodes(own))
    return _Loaded(np.ascontiguousarray(values.transpose(2, 1, 0)), affine, axes)


def _check_stream(path: Path) -> None:
    """Read a compressed file to its end, where its checksum stands: nibabel stops after the last voxel."""
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as file:
            while file.read(_PIECE):
                pass


def _check_header(image: Any, raw: Any, path: Path) -> None:
    if len(image.shape) != 3 or not 0 < np.prod(image.shape) <= _MOST_VOXELS:
        raise UserError(f"{path} should hold one volume of three axes, got {image.shape}")
    sizes = np.asarray(raw["pixdim"][1:4], dtype=np.float64)
    if not (np.isfinite(sizes).all() and (sizes > 0).all() and np.linalg.det(image.affine[:3, :3])):
        raise UserError(f"{path} has no spacing (pixdim {sizes.tolist()}); set it in the header")


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    fits = values.dtype.kind in "iu" and values.min() >= -(1 << 15) and values.max() < 1 << 15
    with np.errstate(over="ignore"):  # what is beyond float32 is no finite number, as the next step says
        return values.astype(np.int16 if fits else np.float32)


def _without_holes(values: NDArray[Any], path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Voxels that are no numbers as air: some programs write them where the scanner saw nothing."""
    holes = ~np.isfinite(values)
    if not holes.any():
        return values, ()
    if holes.all():
        raise UserError(f"{path} holds no finite number at all; get it again")
    return np.where(holes, values.dtype.type(_AIR), values), (
        f"{int(holes.sum())} voxels are no finite numbers and were taken as air",
    )


def scan_name(path: Path) -> str:
    """The name of a file without its ending, which has two parts in .nii.gz; other dots are of the name."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _shape(array: NDArray[Any]) -> str:
    return "x".join(map(str, array.shape))
