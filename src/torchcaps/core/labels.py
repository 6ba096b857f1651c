"""Refusals of labels that do not belong to their samples."""

from __future__ import annotations

import torch
from torch import Tensor

from .errors import UserError


def require_labels(samples: Tensor, labels: Tensor, classes: int | None = None) -> None:
    """A clear error unless each of `samples` has one label, a whole number below `classes`.

    Values are read on the CPU alone: reading them elsewhere would stop the device.
    """
    if labels.shape != samples.shape[:1]:
        raise UserError(
            f"labels must hold one class for each of {samples.shape[0]} samples, that is have the shape "
            f"{[samples.shape[0]]}, got {list(labels.shape)}"
        )
    if classes is not None and labels.dtype != torch.int64:
        raise UserError(f"labels must be whole numbers of type torch.int64, got {labels.dtype}")
    if classes is None or labels.device.type != "cpu" or torch.compiler.is_compiling():
        return
    try:
        is_wrong = bool(((labels < 0) | (labels >= classes)).any())
    except RuntimeError:  # under vmap and in a sketch tensors have no values
        return
    if is_wrong:
        found = f"from {int(labels.min())} to {int(labels.max())}"
        raise UserError(f"labels must lie between 0 and {classes - 1}, got labels {found}")
