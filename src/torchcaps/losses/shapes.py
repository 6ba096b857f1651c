"""Refusals of shapes that would be broadcast into a loss of the wrong pairs."""

from __future__ import annotations

from torch import Tensor

from torchcaps.core import UserError


def require_same_shape(**tensors: Tensor) -> None:
    """A clear error unless all tensors, passed by their names, have one shape; shapes alone are read."""
    shapes = [tensor.shape for tensor in tensors.values()]
    if any(shape != shapes[0] for shape in shapes):
        got = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in tensors.items())
        raise UserError(
            f"{' and '.join(tensors)} must have the same shape (batch, channels or classes, height, width), "
            f"got {got}"
        )
