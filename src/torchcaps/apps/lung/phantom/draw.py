"""Regions around drawn nodules, straight from the shapes: no scan, no files, no reader of DICOM is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..prepare import LEAST_PIXELS, SIDE, Cut, Region, draw_offset
from ..volume import grey_bytes
from .nodule import Nodule
from .patient import Patient, draw_patient
from .readers import Reading, draw_readings
from .scanner import Grid, add_noise, scan_slice
from .vessels import point_in_tubes

_REACH = 70.0  # mm from the middle slice
_TRIES = 10  # places looked at for each region without a nodule


def draw_cuts(number: int, seed: int, *, slices: int = 3) -> list[Cut]:
    """Regions of patient `number` of the world `seed`: so many slices of each nodule at most."""
    patient = draw_patient(number, seed)
    random = np.random.default_rng([patient.seed, 2])
    spacing, thickness = _draw_protocol(random)
    by_nodule = _by_nodule(patient)
    found = []
    for count, nodule in enumerate(patient.nodules):
        spread = np.linspace(-0.6, 0.6, slices) if slices > 1 else np.zeros(1)
        for step, share in enumerate(spread):
            grid = _grid_around(nodule.centre, random, spacing, share * nodule.radius)
            grey = _scan(patient, grid, thickness, random)
            if _agreed(patient, [by_nodule[count]], grid).sum() >= LEAST_PIXELS:
                mask = _agreed(patient, by_nodule, grid).astype(np.uint8)
                cut = Cut(
                    Region(grey, mask, step, 0, 0),
                    nodule=count,
                    readers=len(by_nodule[count]),
                    diameter_mm=_diameter(nodule),
                    spacing=(thickness, spacing, spacing),
                )
                found.append(cut)
    return found


def draw_empty_cuts(number: int, seed: int, count: int) -> list[Cut]:
    """At most `count` regions of a patient that show no nodule: vessels, scars and walls in turn."""
    patient = draw_patient(number, seed)
    random = np.random.default_rng([patient.seed, 3])  # another one: regions of nodules stay what they are
    spacing, thickness = _draw_protocol(random)
    by_nodule = _by_nodule(patient)
    found: list[Cut] = []
    for step in range(_TRIES * count):
        if len(found) == count:
            break
        grid = _grid_around(_mistakable(patient, random, step % 3), random, spacing)
        mask = _agreed(patient, by_nodule, grid).astype(np.uint8)
        if not mask.any():
            region = Region(_scan(patient, grid, thickness, random), mask, step, 0, 0)
            found.append(Cut.without_nodule(region, (thickness, spacing, spacing)))
    return found


def _mistakable(patient: Patient, random: np.random.Generator, kind: int) -> NDArray[np.float64]:
    """A place in a vessel, in a scar or on a wall."""
    if kind < 2:
        return point_in_tubes(random, (patient.vessels, patient.scars)[kind])
    return patient.chest.point_at_depth(random, (-1.0, 1.0), _REACH)


def _draw_protocol(random: np.random.Generator) -> tuple[float, float]:
    """Millimetres of a pixel and of a slice."""
    return float(random.uniform(0.6, 0.8)), float(random.choice([1.25, 2.0, 2.5]))


def _grid_around(
    place: NDArray[np.float64], random: np.random.Generator, spacing: float, above: float = 0.0
) -> Grid:
    """The pixels of a region; the place lies beside its middle, and `above` mm below it."""
    left, top = place[:2] + (draw_offset(random) - SIDE / 2) * spacing
    return Grid(float(top), float(left), float(place[2] + above), spacing, (SIDE, SIDE))


def _scan(patient: Patient, grid: Grid, thickness: float, random: np.random.Generator) -> NDArray[np.uint8]:
    return grey_bytes(add_noise(scan_slice(patient, grid, thickness), random, patient.noise))


def _by_nodule(patient: Patient) -> list[list[Reading]]:
    readings = [each for reader in draw_readings(patient) for each in reader]
    return [[each for each in readings if each.nodule is nodule] for nodule in patient.nodules]


def _agreed(patient: Patient, by_nodule: list[list[Reading]], grid: Grid) -> NDArray[np.bool_]:
    """Where at least half of the readers of a nodule agree, for any of the nodules."""
    agreed = [
        np.mean([reading.mask(patient, grid) for reading in readings], axis=0) >= 0.5
        for readings in by_nodule
    ]
    return np.any(agreed, axis=0)


def _diameter(nodule: Nodule) -> float:
    return float(2 * nodule.radius * np.prod(nodule.axes) ** (1 / 3))
