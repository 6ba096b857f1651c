"""Groups of rotations that leave an object looking the same."""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from .errors import UserError
from .rotation import first_of_each, hamilton

_HALF = 0.5**0.5
_GENERATORS: dict[str, tuple[tuple[float, ...], ...]] = {  # quarter turns; third turns; half turns
    "none": (),
    "cube": ((_HALF, _HALF, 0.0, 0.0), (_HALF, 0.0, _HALF, 0.0)),
    "tetrahedron": ((0.5, 0.5, 0.5, 0.5), (0.0, 1.0, 0.0, 0.0)),
}
_MOST = 240  # elements; a generator by an odd angle would never close


def symmetry_group(spec: str) -> Float[Tensor, "elements 4"]:
    """The group called `spec`, or the one that given quaternions generate.

    Args:
        spec: "none", "cube" (24 rotations), "tetrahedron" (12), or generators as unit quaternions
            (w, x, y, z) with semicolons between: "0 0 0 1" is a half turn about z.
    """
    return _closed(spec).clone()


@cache
def _closed(spec: str) -> Tensor:
    generators = _GENERATORS.get(spec.strip()) or ([] if spec.strip() == "none" else _parsed(spec))
    group = torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64)
    steps = torch.tensor([*generators], dtype=torch.float64).reshape(-1, 4)
    while len(steps):
        found = torch.cat((group, hamilton(group[:, None], steps[None]).flatten(0, 1)))
        found = found[first_of_each(found)]
        if len(found) > _MOST:
            raise UserError(f"symmetry {spec!r} has more than {_MOST:,} rotations; are its angles exact?")
        if len(found) == len(group):
            break
        group = found
    return torch.nn.functional.normalize(group, dim=1).float()


def _parsed(spec: str) -> list[list[float]]:
    try:
        numbers = [[float(word) for word in part.split()] for part in spec.split(";")]
    except ValueError:
        numbers = [[]]
    if any(len(each) != 4 or abs(sum(n * n for n in each) - 1) > 1e-3 for each in numbers):
        raise UserError(
            f"symmetry {spec!r} is neither {', '.join(_GENERATORS)} nor unit quaternions w x y z with "
            "semicolons between"
        )
    return torch.nn.functional.normalize(torch.tensor(numbers, dtype=torch.float64), dim=1).tolist()


def group_table(specs: tuple[str, ...]) -> Float[Tensor, "classes elements 4"]:
    """The groups of several classes in one table; a smaller group repeats its first element."""
    groups = [symmetry_group(spec) for spec in specs]
    most = max(map(len, groups))
    return torch.stack([torch.cat((group, group[:1].expand(most - len(group), 4))) for group in groups])
