"""Small CT volumes that the tests of this folder share."""

import numpy as np

from torchcaps.apps.lung import Volume


def chest(slices=10, side=64, nodules=()):
    """A body of tissue in air with two lungs in the inner slices, and balls (slice, row, column, radius)."""
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    hounsfield = np.full((slices, side, side), -1000, np.int16)
    hounsfield[:, (rows / 0.4) ** 2 + (columns / 0.46) ** 2 < 1] = 40
    for centre in (-0.2, 0.2):
        lung = (rows / 0.27) ** 2 + ((columns - centre) / 0.15) ** 2 < 1
        hounsfield[2:-2, lung] = -850
    grid = np.stack(np.mgrid[:slices, :side, :side], axis=-1)
    for *centre, radius in nodules:
        hounsfield[((grid - centre) ** 2).sum(-1) <= radius**2] = 30
    return hounsfield


def volume(hounsfield, spacing=(2.0, 0.8, 0.7), name="test"):
    """With a patient's axes that are neither those of the array nor at the origin."""
    depth, rows, columns = spacing
    affine = np.diag([columns, rows, depth, 1.0])
    affine[:3, 3] = (-100.0, -120.0, 40.0)
    return Volume(hounsfield, spacing, affine, name)
