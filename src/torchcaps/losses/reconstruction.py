"""Reconstruction loss, the regulariser of a capsule network with a decoder."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from torchcaps.core import UserError

from .shapes import require_same_shape


def reconstruction_loss(
    reconstruction: Float[Tensor, "batch channels height width"] | None,
    images: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, ""]:
    """Sum of squared pixel errors, mean over the batch.

    Sabour weighs it by 0.0005; for 28x28 that equals 0.392 times the mean squared error.
    """
    if reconstruction is None:
        raise UserError('there is no reconstruction to compare: build the model with a decoder, decoder="fc"')
    require_same_shape(reconstruction=reconstruction, images=images)
    return (reconstruction - images).square().sum((1, 2, 3)).mean()
