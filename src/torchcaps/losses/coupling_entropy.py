"""A differentiable bound of the parse-tree entropy: few trees as an objective, not as a side effect."""

from __future__ import annotations

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import even_levels, mark_labels, require_labels

_LEAST = 1e-12  # the slope of the entropy is infinite at a share of 0


def coupling_entropy_loss(
    coupling: Float[Tensor, "batch in_caps classes"],
    labels: Int[Tensor, " batch"],
    *,
    levels: int | None = None,
    sharpness: float = 8.0,
) -> Float[Tensor, ""]:
    """Entropy of each child's coupling to the true class, in bits, mean over children and classes.

    Each coupling is spread over the quantization levels by a softmax of squared distances, in units of a
    level; the entropy of their mean over the images of a class is taken for each child alone. The sum over
    children bounds the entropy of whole trees from above, so that driving it down drives that down.

    Args:
        coupling: Of the last routed layer, with gradients: routing must not hold couplings constant.
        labels: True classes; those absent from the batch do not count.
        levels: As in quantization; by default as many as make an even share of the classes a level.
        sharpness: How clearly a coupling belongs to one level; the limit of large values is counting.
    """
    require_labels(coupling, labels, coupling.shape[2])
    own = coupling.gather(2, labels.view(-1, 1, 1).expand(-1, coupling.shape[1], 1)).clamp(0, 1)
    levels = even_levels(coupling.shape[2]) if levels is None else levels
    level = torch.arange(levels, device=coupling.device, dtype=coupling.dtype)
    membership = (-sharpness * (own * (levels - 1) - level).square()).softmax(2)  # (batch, in_caps, level)
    is_class = mark_labels(labels, coupling[:, 0])
    images = is_class.sum(0)
    share = torch.einsum("bc,bil->cil", is_class, membership) / images.clamp(min=1)[:, None, None]
    nats = torch.special.entr(share.clamp(min=_LEAST)).sum(2).mean(1)
    return (nats * (images > 0)).sum() / ((images > 0).sum() * log(2))
