"""Cross-entropy of class probabilities."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def cross_entropy_loss(
    probabilities: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Mean negative logarithm of the probability of the true class.

    Expects probabilities, not logits; one that has vanished counts as the smallest number of its type.
    """
    smallest = torch.finfo(probabilities.dtype).tiny
    return F.nll_loss(probabilities.clamp_min(smallest).log(), labels)
