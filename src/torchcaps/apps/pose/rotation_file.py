"""Rotations in a CSV file, whose first line says which number is which."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import read_text


def read_rotations(path: Path) -> Float[Tensor, "count 4"]:
    """Unit quaternions (w, x, y, z) from the columns of these names, in whatever order they stand."""
    if not path.is_file():
        raise MissingDataError(f"no rotations at {path}")
    with StringIO(read_text(path), newline="") as file:
        reader = csv.DictReader(file)
        if not {"w", "x", "y", "z"} <= set(reader.fieldnames or ()):
            raise UserError(
                f"{path}: the first line must name the columns w, x, y and z, so that the order is known; "
                "SciPy and Blender disagree about it"
            )
        try:
            rows = [(reader.line_num, [float(line[name]) for name in "wxyz"]) for line in reader]
        except (TypeError, ValueError) as error:
            raise UserError(f"{path}: w, x, y and z must be numbers ({error})") from error
    if not rows:
        raise MissingDataError(f"{path} has no rotations")
    found = torch.tensor([numbers for _, numbers in rows])
    is_unit = (torch.linalg.vector_norm(found, dim=1) - 1).abs() <= 0.01  # of NaN, too, it is not
    for (line, _), is_right in zip(rows, is_unit.tolist(), strict=True):
        if not is_right:
            raise UserError(f"{path}: line {line} is no unit quaternion; normalise them")
    return torch.nn.functional.normalize(found, dim=1)
