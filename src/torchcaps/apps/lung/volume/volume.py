"""A CT volume in Hounsfield units, with the millimetres that belong to its voxels."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, prod
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from numpy.typing import NDArray

from torchcaps.core import UserError

_AIR = -400  # Hounsfield units; what lies below is air
_PADDING = -1500  # what lies below was not measured: scanners fill the corners of slices with it
_FINEST, _COARSEST = 1e-4, 1e3  # mm between voxels; what lies beyond is damage
_FARTHEST = 1e6  # mm from the origin of the patient
_LOWEST, _HIGHEST = np.float32(-1000), np.float32(400)  # Hounsfield units of the window that networks see


@dataclass(frozen=True, eq=False)
class Volume:
    """A CT volume.

    Attributes:
        hounsfield: int16 or float32 of shape (slices, rows, columns).
        spacing: Millimetres between (slices, rows, columns); None for a picture, which does not tell them.
        affine: Maps (column, row, slice, 1) to millimetres (left, posterior, superior, 1) of the patient.
        name: Of the patient or file.
        series_uid: Of the DICOM series.
        slices: The DICOM files in the order of the slices.
        image_uids: Of the DICOM images, in the same order; empty for other sources.
        notes: What was mended while reading, in words.
        axes: Where the axes of the NIfTI file lead, such as "RAS"; masks are written with the same axes.
    """

    hounsfield: NDArray[np.int16] | NDArray[np.float32]
    spacing: tuple[float, float, float] | None
    affine: NDArray[np.float64]
    name: str
    series_uid: str | None = None
    slices: tuple[Path, ...] | None = None
    image_uids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    axes: str = "LPS"

    def __post_init__(self) -> None:
        if self.hounsfield.ndim != 3 or not self.hounsfield.size:
            raise UserError(
                f"{self.name}: a volume has slices, rows and columns; got {self.hounsfield.shape}"
            )
        spacing = self.spacing or ()
        has_sizes = all(_FINEST <= each <= _COARSEST for each in spacing)
        if not (has_sizes and (np.abs(self.affine) < _FARTHEST).all()):
            raise UserError(
                f"{self.name} has voxels of {' x '.join(f'{each:g}' for each in spacing)} mm, of which the "
                f"first lies at {self.affine[:3, 3].tolist()} mm: its header is damaged; get it again"
            )

    @property
    def millimetres(self) -> tuple[float, float, float]:
        """The spacing; a volume without one is an error."""
        if self.spacing is None:
            raise UserError(
                f"{self.name} has no spacing, so nothing can be said in millimetres; "
                "give a DICOM series or a NIfTI file, which have one"
            )
        return self.spacing

    def size_of(self, voxels: int) -> float | None:
        """Cubic millimetres of so many voxels; None in a picture."""
        return None if self.spacing is None else voxels * prod(self.spacing)


def equivalent_diameter(volume: float) -> float:
    """The diameter in mm of a ball of `volume` mm3."""
    return (6 * volume / pi) ** (1 / 3)


def doubts(hounsfield: Shaped[np.ndarray, "*shape"]) -> tuple[str, ...]:
    """What speaks against Hounsfield units, in words: every chest holds air, at about -1000."""
    lowest = float(hounsfield.min(where=hounsfield > _PADDING, initial=hounsfield.max()))
    if _PADDING < lowest <= _AIR:
        return ()
    return (
        f"nothing is as dark as air: the lowest value is {lowest:.4g}, where air has -1000; if these are no "
        "Hounsfield units, bring them to such first, or what is found means nothing",
    )


def window(hounsfield: Shaped[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Hounsfield units as float32 in [0, 1]: -1000 and less become 0, 400 and more become 1."""
    scaled = (np.asarray(hounsfield, dtype=np.float32) - _LOWEST) / (_HIGHEST - _LOWEST)
    return np.clip(scaled, 0, 1, out=scaled)


def grey_bytes(hounsfield: Shaped[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape"]:
    """Hounsfield units as the network sees them, in bytes."""
    return np.round(window(hounsfield) * 255).astype(np.uint8)


def unwindow(grey: Shaped[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Hounsfield units that `window` maps to `grey` in [0, 1]."""
    return np.asarray(grey, dtype=np.float32) * (_HIGHEST - _LOWEST) + _LOWEST
