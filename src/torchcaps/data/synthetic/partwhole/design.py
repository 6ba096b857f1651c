"""What a PartWhole benchmark looks like: its classes, and how strongly its images vary."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

from torchcaps.core import UserError

from .shapes import KINDS

_SMALLEST, _LARGEST = 16, 512  # pixels


@dataclass(frozen=True, kw_only=True)
class Design:
    """Settings of PartWhole; strengths of 0 switch a change off.

    Attributes:
        classes: How many there are; at most the factorial of the last of `branches`.
        branches: Children of a thing on each level, lowest first: (4,) are objects of four parts, (3, 3)
            are scenes of three objects of three parts each.
        size: Height and width of the images in pixels.
        rotation: Degrees by which an object, or scene, turns to each side; 180 is any turn.
        shear: Pixels of x per pixel of y, to each side.
        scale: Each axis by a factor in 1 ± scale.
        jitter: How far a child leaves its place, 0 to 1; at 1 neighbours may touch.
        clutter: The probability of each distractor, a loose part behind the object.
        texture: Contrast of the background's clouds and of the stripes on parts, 0 to 1.
        grammar: The seed that chooses which arrangements are classes.
    """

    classes: int = 8
    branches: tuple[int, ...] = (4,)
    size: int = 32
    rotation: float = 180.0
    shear: float = 0.2
    scale: float = 0.2
    jitter: float = 0.3
    clutter: float = 0.3
    texture: float = 0.3
    grammar: int = 0

    def __post_init__(self) -> None:
        self._check_branches()
        _require(self.classes >= 2, "classes", "must be at least 2", self.classes)
        most = factorial(self.branches[-1])
        _require(
            self.classes <= most,
            "classes",
            f"can be at most {most} with {self.branches[-1]} children on the last level (raise it)",
            self.classes,
        )
        is_drawable = _SMALLEST <= self.size <= _LARGEST
        _require(is_drawable, "size", f"must lie in {_SMALLEST}..{_LARGEST}", self.size)
        _require(0 <= self.rotation <= 180, "rotation", "must lie in 0..180 degrees", self.rotation)
        for name in ("shear", "scale"):
            _require(0 <= getattr(self, name) < 1, name, "must lie in [0, 1)", getattr(self, name))
        for name in ("jitter", "clutter", "texture"):
            _require(0 <= getattr(self, name) <= 1, name, "must lie in [0, 1]", getattr(self, name))

    def _check_branches(self) -> None:
        _require(len(self.branches) >= 1, "branches", "needs a level", self.branches)
        _require(min(self.branches) >= 2, "branches", "must be at least 2 on each level", self.branches)
        _require(
            self.branches[0] <= len(KINDS), "branches", f"begins with at most {len(KINDS)}", self.branches
        )
        for below, above in zip(self.branches, self.branches[1:], strict=False):
            _require(
                above <= factorial(below),
                "branches",
                f"of {below} allow {factorial(below)} different children above",
                self.branches,
            )


def _require(is_valid: bool, name: str, rule: str, value: object) -> None:
    if not is_valid:
        raise UserError(f"partwhole.{name} {rule}, got {value!r}")
