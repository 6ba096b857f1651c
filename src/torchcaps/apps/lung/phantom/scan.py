"""A whole scan of a drawn patient, and what four readers say of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchcaps.core import UserError

from ..nodules import Annotations, Marking, Outline, trace_outline
from ..volume import Volume
from .patient import Patient
from .readers import NUM_READERS, Reading, draw_readings
from .scanner import Grid, add_noise, scan_slice

_FIELD = 380.0  # mm across a slice


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How patients are scanned: pixels along each side of a slice, slices, and millimetres between them."""

    size: int = 512
    slices: int = 60
    thickness: float = 2.5

    def __post_init__(self) -> None:
        if self.size < 64 or self.slices < 8 or not 0.5 <= self.thickness <= 10:
            raise UserError(
                "a scan has at least 64 pixels to a side, 8 slices, and 0.5 to 10 mm between them"
            )

    @property
    def spacing(self) -> float:
        """Millimetres of a pixel."""
        return _FIELD / self.size

    @property
    def reach(self) -> float:
        """How far from the middle slice nodules lie."""
        return max(0.5 * self.slices * self.thickness - 12, 4.0)

    def grid(self, number: int) -> Grid:
        """The pixels of a slice; slice 0 is the lowest."""
        height = (number - (self.slices - 1) / 2) * self.thickness
        start = -(self.size - 1) / 2 * self.spacing
        return Grid(start, start, height, self.spacing, (self.size, self.size))


def scan_patient(patient: Patient, protocol: Protocol, series_uid: str) -> Volume:
    """The CT volume of a patient, with noise."""
    random = np.random.default_rng([patient.seed, 1])
    planes = []
    for number in range(protocol.slices):
        clean = scan_slice(patient, protocol.grid(number), protocol.thickness)
        planes.append(add_noise(clean, random, patient.noise).round().clip(-1024, 3071).astype(np.int16))
    first, spacing = protocol.grid(0), protocol.spacing
    affine = np.diag([spacing, spacing, protocol.thickness, 1.0])
    affine[:3, 3] = first.left, first.top, first.height
    return Volume(np.stack(planes), (protocol.thickness, spacing, spacing), affine, patient.name, series_uid)


def read_patient(patient: Patient, protocol: Protocol, series_uid: str) -> Annotations:
    """The outlines of four readers, slice by slice."""
    markings = []
    for reader, readings in enumerate(draw_readings(patient)):
        for number, reading in enumerate(readings):
            outlines = _outlines(reading, patient, protocol)
            if outlines:
                markings.append(Marking(reader, f"{reader}-{number}", outlines, None))
    return Annotations(series_uid, NUM_READERS, tuple(markings))


def _outlines(reading: Reading, patient: Patient, protocol: Protocol) -> tuple[Outline, ...]:
    """One for each connected part of the reader's mask in each slice."""
    from scipy import ndimage

    found = []
    for number in range(protocol.slices):
        grid = protocol.grid(number)
        mask = reading.mask(patient, grid)
        if mask.any():
            labels, count = ndimage.label(mask)
            parts = (labels == label for label in range(1, count + 1))
            found += [Outline(grid.height, True, trace_outline(part)) for part in parts]
    return tuple(found)
