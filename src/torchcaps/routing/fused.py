"""What a layer may ask of a routing before it routes: a fused kernel, or a batch in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from torchcaps.core import Routed

from .api import Routing

FusedPath: TypeAlias = Callable[[], Routed] | str  # the call that runs the kernel, or why it cannot run


class UncastVotes(NamedTuple):
    """Children and the matrices they vote with; the votes themselves do not exist yet."""

    poses: Float[Tensor, "*where in_caps in_pose"]
    activations: Float[Tensor, "*where in_caps"]
    weight: Float[Tensor, "matrices in_columns out_caps out_columns"]  # child i votes with row `i % matrices`
    return_coupling: bool
    pose_rows: int = 1  # of poses that are matrices
    offsets: Float[Tensor, "in_caps out_pose"] | None = None  # added to the votes of each child

    @property
    def where(self) -> torch.Size:
        """Batch and positions."""
        return self.poses.shape[:-2]

    @property
    def numbers_of_sample(self) -> int:
        """How many numbers the votes of one sample are."""
        return prod(self.poses.shape[1:-1]) * self.weight.shape[2] * self.weight.shape[3] * self.pose_rows

    def needs_gradient(self, parameters: Iterable[Tensor]) -> bool:
        """Whether the children, the matrices or `parameters` learn from what is computed now."""
        learning = (self.poses, self.activations, self.weight, *parameters)
        return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in learning)


class StoredVotes(NamedTuple):
    """Votes that a convolution has written, for each position of a map by itself."""

    votes: Float[Tensor, "batch in_types height width out_types pose"]
    activations: Float[Tensor, "batch rows columns in_types"]  # of the children, on the map below
    return_coupling: bool
    dtype: torch.dtype  # of the result; the votes may be in half precision


class Parts(NamedTuple):
    """How the plain path divides a batch."""

    samples: int  # at a time
    recompute: bool = False  # cast the votes again in the backward pass, instead of storing them


@runtime_checkable
class FusedRouting(Protocol):
    """A routing with a kernel that casts the votes and routes them, without storing them."""

    def fuse(self, votes: UncastVotes, *, insist: bool) -> FusedPath:
        """The call that runs the kernel on `votes`, or the reason against it.

        With `insist` a reason that concerns speed alone does not count.
        """
        ...


@runtime_checkable
class FusedStoredRouting(Protocol):
    """A routing with a kernel that routes votes which a convolution has written."""

    def fuse_stored(self, votes: StoredVotes, *, insist: bool) -> FusedPath:
        """As `FusedRouting.fuse`."""
        ...


@runtime_checkable
class RoutesInParts(Protocol):
    """A routing that asks the plain path to take a large batch in parts."""

    def batch_parts(self, votes: UncastVotes) -> Parts | None:
        """How to divide these votes; None routes all samples at once."""
        ...


def fused_path(routing: Routing, votes: UncastVotes | StoredVotes, *, insist: bool = False) -> FusedPath:
    """The call that runs the fused kernel of `routing` for `votes`, or in words why there is none.

    A class derived from a routing with a kernel may route in another way: it has a kernel only where it
    defines one itself.
    """
    method = "fuse_stored" if isinstance(votes, StoredVotes) else "fuse"
    if method not in vars(type(routing)):
        return f"there is no fused kernel for {type(routing).__name__}"
    if is_watched(routing):
        return "a hook watches or changes the routing, and the fused kernel would not call it"
    if is_transformed():
        return "the fused kernels have reverse derivatives alone, and a transform of torch.func is active"
    path: FusedPath = getattr(routing, method)(votes, insist=insist)
    return path


def is_transformed() -> bool:
    """Whether derivatives other than reverse ones are being taken; those of a kernel would be zero."""
    return not torch.compiler.is_compiling() and (
        forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()
    )


def vector_obstacle(votes: UncastVotes, parameters: Iterable[Tensor]) -> str | None:
    """What stops a kernel that takes vectors as poses, adds no offsets and gives couplings no gradient."""
    if votes.pose_rows != 1:
        return "the fused kernel of this routing does not take poses that are matrices"
    if votes.offsets is not None:
        return "the fused kernel of this routing adds no offsets to the votes"
    if votes.return_coupling and votes.needs_gradient(parameters):
        return "the couplings were asked for together with gradients, which only the plain path gives them"
    return None


def is_watched(routing: Routing) -> bool:
    """Whether a routing has hooks that see what goes through it."""
    return isinstance(routing, nn.Module) and any(
        (
            routing._forward_hooks,
            routing._forward_pre_hooks,
            routing._backward_hooks,
            routing._backward_pre_hooks,
        )
    )
