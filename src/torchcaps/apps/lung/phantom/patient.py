"""A drawn patient: a chest, its vessels, nodules, and what is taken for nodules by mistake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from .chest import Chest, draw_chest
from .nodule import Nodule, draw_nodule
from .vessels import grow_vessels, point_in_tubes

_ATTACHMENTS = ("none", "wall", "vessel")


@dataclass(frozen=True, kw_only=True, eq=False)
class Patient:
    """What the scanner will see.

    Attributes:
        name: Such as phantom-0007.
        seed: All that is drawn of the patient follows from it.
        vessels: Tubes as rows of (begin, end, radius).
        scars: Short tubes of soft tissue that no reader marks.
        noise: Deviation of the scanner's noise in Hounsfield units.
    """

    name: str
    seed: int
    chest: Chest
    vessels: Float[np.ndarray, "segments 7"]
    scars: Float[np.ndarray, "scars 7"]
    nodules: tuple[Nodule, ...]
    noise: float


def patient_name(number: int) -> str:
    """The name of a drawn patient."""
    return f"phantom-{number:04d}"


def draw_patient(number: int, seed: int, *, reach: float = 70.0) -> Patient:
    """Patient `number` of the world `seed`; nodules lie within `reach` mm of the middle slice."""
    random = np.random.default_rng([seed, number])
    chest = draw_chest(random)
    roots = [(side, np.array([side * 0.2 * chest.body[0], 5.0, -5.0])) for side in (-1.0, 1.0)]
    tubes = np.concatenate([grow_vessels(random, root, side) for side, root in roots])
    inside = chest.lung_depth(tubes[:, :3]) < 1
    vessels = tubes[inside & (chest.lung_depth(tubes[:, 3:6]) < 3)]
    nodules = tuple(_place(random, chest, vessels, reach) for _ in range(random.integers(1, 4)))
    return Patient(
        name=patient_name(number),
        seed=int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
        chest=chest,
        vessels=vessels,
        scars=_draw_scars(random, chest, reach),
        nodules=nodules,
        noise=float(random.uniform(20, 55)),
    )


def _place(random: np.random.Generator, chest: Chest, vessels: NDArray[np.float64], reach: float) -> Nodule:
    """A nodule in the lung, on its wall, or on a vessel."""
    radius = float(np.clip(random.lognormal(np.log(4.2), 0.5), 1.8, 13))
    attachment = _ATTACHMENTS[random.choice(3, p=[0.4, 0.3, 0.3])]
    if attachment == "vessel":
        near = vessels[(np.abs(vessels[:, 2]) < reach) & (vessels[:, 6] < 2.5)]
        centre = point_in_tubes(random, near) + random.normal(0, 0.4 * radius, 3)
    else:
        deepest = -0.2 * radius if attachment == "wall" else -200.0
        highest = 0.1 * radius if attachment == "wall" else -(1.3 * radius + 4)
        centre = chest.point_at_depth(random, (deepest, highest), reach)
    return draw_nodule(random, centre, radius)


def _draw_scars(random: np.random.Generator, chest: Chest, reach: float) -> NDArray[np.float64]:
    """Short bars of soft tissue; cut across they look like nodules."""
    scars = []
    for _ in range(random.integers(4, 12)):
        begin = chest.point_at_depth(random, (-200.0, -3.0), reach)
        direction = random.normal(size=3)
        length = random.uniform(8, 22)
        end = begin + direction / np.linalg.norm(direction) * length
        scars.append([*begin, *end, random.uniform(1.2, 3.0)])
    return np.array(scars)
