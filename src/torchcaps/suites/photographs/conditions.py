"""The conditions of the suite, in groups: what changes of a digit by ball pen on a small white sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from torchcaps.core import generator

from .scene import Scene

_A4 = {"size": (2100, 2970), "scale": 10.0}  # six megapixels
_PENCIL = {"pen": 0.6, "ink": 160.0, "rough": 0.5}
Changes = Mapping[str, Any]  # of the fields of a scene
GROUPS: Mapping[str, Mapping[str, Changes]] = {
    "page": {
        "A6, digit of 1.5 cm": {},
        "cut close to the digit": {"size": (360, 420), "scale": 22.0},
        "A4, digit of 2 cm": {**_A4, "digit": 20.0},
        "A4, digit of 1 cm": {**_A4, "digit": 10.0},
        "A4, digit of 6 mm": {**_A4, "digit": 6.0},
    },
    "pen": {
        "fine, 0.3 mm": {"pen": 0.3},
        "pencil": _PENCIL,
        "pencil on ruled paper": {**_PENCIL, "rows": 8.0},
        "pencil on squared paper": {**_PENCIL, "rows": 5.0, "columns": 5.0},
        "pencil beside a shadow": {**_PENCIL, "light": "sharp shadow"},
        "felt tip, 1.5 mm": {"pen": 1.5},
        "marker, 3 mm": {"pen": 3.0},
        "strokes of the test image": {"pen": None},
    },
    "tones": {
        "white on black": {"paper": 40.0, "ink": 225.0},
        "chalk on a board": {"paper": 75.0, "ink": 200.0, "pen": 1.5, "rough": 0.6},
    },
    "light": {
        "from a window": {"light": "window"},
        "from a lamp": {"light": "lamp"},
        "soft edge of a shadow": {"light": "shadow"},
        "sharp edge of a shadow": {"light": "sharp shadow"},
        "dim": {"exposure": 0.35, "noise": 8.0},
    },
    "angle": {
        "turned by up to 15°": {"turn": 15.0},
        "turned by up to 30°": {"turn": 30.0},
        "tilted by 25°": {"tilt": 25.0},
        "tilted by 45°": {"tilt": 45.0},
    },
    "camera": {
        "out of focus": {"blur": 2.5},
        "far out of focus": {"blur": 5.0},
        "grainy": {"noise": 12.0},
        "very grainy": {"noise": 30.0},
        "compressed": {"quality": 20},
        "much compressed": {"quality": 5},
        "reduced to 250x188 pixels": {"shrink": 4},
    },
    "sheet": {
        "ruled": {"rows": 8.0},
        "ruled darkly": {"rows": 8.0, "line": 90.0},
        "squared": {"rows": 5.0, "columns": 5.0},
        "squared darkly": {"rows": 5.0, "columns": 5.0, "line": 90.0},
        "ring of a cup": {"ring": True},
        "blots": {"blots": 4},
        "on a dark table": {"table": 60.0},
        "on a light table": {"table": 150.0},
    },
}
_THICKEST = 0.25  # of the height of a digit: nobody writes a small one with a broad marker
EMPTY: Mapping[str, Changes] = {
    "plain": {},
    "soft edge of a shadow": GROUPS["light"]["soft edge of a shadow"],
    "sharp edge of a shadow": GROUPS["light"]["sharp edge of a shadow"],
    **GROUPS["sheet"],
}


def mixed(number: int) -> Scene:
    """A scene in which about half of the groups are changed, for the photograph of that number."""
    rng = generator(0, "photographs suite", "all at once", number)
    changes: dict[str, Any] = {}
    for group, draw in zip(GROUPS.values(), torch.rand(len(GROUPS), generator=rng).tolist(), strict=True):
        if draw >= 0.5:
            changes |= list(group.values())[int((2 * draw - 1) * len(group))]
    scene = replace(Scene(), **changes)
    return scene if scene.pen is None else replace(scene, pen=min(scene.pen, _THICKEST * scene.digit))
