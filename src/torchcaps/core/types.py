"""The tuples that flow between capsule layers; PyTorch treats each as a pytree."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Capsules(NamedTuple):
    """What one capsule layer hands to the next.

    `where` is the batch alone for flat capsules, or batch, height and width for a grid of capsule types.
    A grid is flattened in the order (height, width, type).
    """

    poses: Float[Tensor, "*where caps pose"]
    activations: Float[Tensor, "*where caps"]


class Routed(NamedTuple):
    """What a routing hands back: the output capsules and who voted for whom.

    `coupling` is None only where a fused kernel ran and nobody asked for it.
    """

    poses: Float[Tensor, "*where out_caps pose"]
    activations: Float[Tensor, "*where out_caps"]
    coupling: Float[Tensor, "*where in_caps out_caps"] | None

    @property
    def capsules(self) -> Capsules:
        """The output capsules as input of the next layer."""
        return Capsules(self.poses, self.activations)


class LayerTrace(NamedTuple):
    """One routed layer of a forward pass: the capsules that voted, and the result."""

    children: Capsules
    routed: Routed


class CapsuleOutput(NamedTuple):
    """What a classification network returns."""

    activations: Float[Tensor, "batch classes"]
    poses: Float[Tensor, "batch classes pose"]
    reconstruction: Float[Tensor, "batch channels height width"] | None = None
    layers: tuple[LayerTrace, ...] = ()  # filled when the caller passes return_routing=True


class SegmentationOutput(NamedTuple):
    """What a segmentation network returns.

    `logits` is there where the network has them: a loss that takes them learns from saturated pixels too.
    """

    activations: Float[Tensor, "batch classes height width"]  # in [0, 1]
    logits: Float[Tensor, "batch classes height width"] | None = None
    reconstruction: Float[Tensor, "batch channels height width"] | None = None
    layers: tuple[LayerTrace, ...] = ()  # filled when the caller passes return_routing=True
