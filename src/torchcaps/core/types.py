"""Numbers, and the tuples that flow between capsule layers; PyTorch treats each as a pytree."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

Number: TypeAlias = float | int  # the run-time checker refuses an int for a float


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
    `deeper` has masks of smaller sizes while a network with deep supervision trains.
    """

    activations: Float[Tensor, "batch classes height width"]  # in [0, 1]
    logits: Float[Tensor, "batch classes height width"] | None = None
    reconstruction: Float[Tensor, "batch channels height width"] | None = None
    layers: tuple[LayerTrace, ...] = ()  # filled when the caller passes return_routing=True
    deeper: tuple[Float[Tensor, "batch classes _y _x"], ...] = ()


class PoseTarget(NamedTuple):
    """What an image of a posed object should give: its class, and its rotation as (w, x, y, z)."""

    labels: Int[Tensor, " batch"]
    rotations: Float[Tensor, "batch 4"]  # unit quaternions


class PoseOutput(NamedTuple):
    """What a pose network returns: for each class, that it is there and how it is turned."""

    activations: Float[Tensor, "batch classes"]
    rotations: Float[Tensor, "batch classes 4"]  # unit quaternions (w, x, y, z)
    reconstruction: None = None
    layers: tuple[LayerTrace, ...] = ()  # filled when the caller passes return_routing=True


class DescriptorOutput(NamedTuple):
    """What a retrieval network returns: a unit vector that is near those of the same place."""

    descriptors: Float[Tensor, "batch descriptor"]
    reconstruction: None = None
    layers: tuple[LayerTrace, ...] = ()  # filled when the caller passes return_routing=True


@runtime_checkable
class Output(Protocol):
    """What a network of any task returns: a named tuple that has these fields beside its own."""

    @property
    def reconstruction(self) -> Tensor | None:
        """The image as a decoder draws it."""
        ...

    @property
    def layers(self) -> tuple[LayerTrace, ...]:
        """The routed layers, where the caller asked for them."""
        ...


Targets: TypeAlias = Tensor | tuple[Tensor, ...]  # what one batch of examples should give
OutputT = TypeVar("OutputT", bound=Output)  # of one task
TargetsT = TypeVar("TargetsT", bound=Targets)
