"""Labels: refusals of those that do not belong to their samples, and targets made of them."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .errors import UserError


def require_labels(samples: Tensor, labels: Tensor, classes: int | None = None) -> None:
    """A clear error unless each of `samples` has one label, a whole number below `classes`.

    Values are read on the CPU alone: reading them elsewhere would stop the device.
    """
    if not isinstance(labels, Tensor):
        raise UserError(
            f"labels must be a tensor of class numbers, got a {type(labels).__name__}; "
            "torch.as_tensor(labels) makes one of a list or an array"
        )
    if labels.shape != samples.shape[:1]:
        raise UserError(
            f"labels must hold one class for each of {samples.shape[0]} samples, that is have the shape "
            f"{[samples.shape[0]]}, got {list(labels.shape)}{_flat_advice(samples, labels)}"
        )
    if classes is not None and labels.dtype != torch.int64:
        raise UserError(
            f"labels must be whole numbers of type torch.int64, got {labels.dtype}; labels.long() gives them"
        )
    if classes is None or labels.device.type != "cpu" or torch.compiler.is_compiling():
        return
    try:
        is_wrong = bool(((labels < 0) | (labels >= classes)).any())
    except RuntimeError:  # under vmap and in a sketch tensors have no values
        return
    if is_wrong:
        found = f"from {int(labels.min())} to {int(labels.max())}"
        raise UserError(f"labels must lie between 0 and {classes - 1}, got labels {found}")


def _flat_advice(samples: Tensor, labels: Tensor) -> str:
    """How labels with an axis too many become class numbers."""
    if labels.ndim != 2 or labels.shape[0] != samples.shape[0]:
        return ""
    change = "squeeze(1)" if labels.shape[1] == 1 else "argmax(1)"
    return f"; labels.{change} may be what you want"


def require_scores(scores: Tensor, labels: Tensor) -> None:
    """A clear error unless `scores` are (batch, classes), and each sample has one label among the classes."""
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise UserError(
            "a loss of classes takes one activation for each, that is a tensor of shape (batch, classes), "
            f"got {got}; give it `activations` of the network's output"
        )
    require_labels(scores, labels, scores.shape[1])


def mark_labels(
    labels: Int[Tensor, "batch ..."], scores: Float[Tensor, "batch classes"]
) -> Float[Tensor, "batch classes"]:
    """One at each label of a sample and zero elsewhere, in the dtype of `scores`.

    As `F.one_hot`, which reads values and so cannot be differentiated for each sample (`torch.func.vmap`).
    """
    return torch.zeros_like(scores).scatter(1, labels.unsqueeze(-1).flatten(1), 1.0)
