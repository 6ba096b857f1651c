"""Regions around drawn nodules, straight from the shapes: no scan, no files, no reader of DICOM is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cut import Cut
from ..regions import LEAST_PIXELS, SIDE, Region, draw_offset
from ..volume import window
from .nodule import Nodule
from .patient import Patient, draw_patient
from .readers import Reading, draw_readings
from .scanner import Grid, add_noise, scan_slice


def draw_cuts(number: int, seed: int, *, slices: int = 3) -> list[Cut]:
    """Regions of patient `number` of the world `seed`: so many slices of each nodule at most."""
    patient = draw_patient(number, seed)
    random = np.random.default_rng([patient.seed, 2])
    spacing, thickness = float(random.uniform(0.6, 0.8)), float(random.choice([1.25, 2.0, 2.5]))
    by_nodule = _by_nodule(patient)
    found = []
    for count, nodule in enumerate(patient.nodules):
        facts = count, len(by_nodule[count]), _diameter(nodule), (thickness, spacing, spacing)
        spread = np.linspace(-0.6, 0.6, slices) if slices > 1 else np.zeros(1)
        for step, share in enumerate(spread):
            left, top = nodule.centre[:2] + (draw_offset(random, SIDE) - SIDE / 2) * spacing
            height = float(nodule.centre[2] + share * nodule.radius)
            grid = Grid(float(top), float(left), height, spacing, (SIDE, SIDE))
            image = add_noise(scan_slice(patient, grid, thickness), random, patient.noise)
            if _agreed(patient, [by_nodule[count]], grid).sum() >= LEAST_PIXELS:
                mask = _agreed(patient, by_nodule, grid).astype(np.uint8)
                grey = (window(image) * 255).round().astype(np.uint8)
                found.append(Cut(Region(grey, mask, step, 0, 0), *facts))
    return found


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
