"""The settings of the chapter on routing annealing, by name."""

from __future__ import annotations

FIXED = (1, 2, 3, 5, 10, 20, 50)
ANNEALED = "annealed to 50"
FIXED_WAYS = {"fixed 1": 1, "fixed 3": 3}
WAYS = (*FIXED_WAYS, "annealed")
POSES = ((2, 4), (4, 8), (8, 16))
_FIRST = ((1, (2, 4)), (32, (8, 16)), (8, (4, 8)), (32, (2, 4)), (1, (8, 16)), (4, (2, 4)), (16, (8, 16)))
GRID = tuple(  # sizes spread over the range come first, in case the time runs out
    dict.fromkeys((*_FIRST, *((types, poses) for poses in POSES for types in (1, 2, 4, 8, 16, 32))))
)


def fixed_name(iterations: int) -> str:
    """The setting of fixed training on MNIST."""
    return f"fixed {iterations}"


def full_name(iterations: int) -> str:
    """The setting of fixed training in which gradients flow through all rounds."""
    return f"{fixed_name(iterations)}, gradient through all rounds"


def size_name(types: int, poses: tuple[int, int]) -> str:
    """One network size of a grid."""
    return f"{types} types, {poses[0]}D and {poses[1]}D"


def grid_name(types: int, poses: tuple[int, int], way: str) -> str:
    """The setting of one network size and way of training."""
    return f"{size_name(types, poses)}, {way}"
