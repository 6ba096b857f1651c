"""What all routed layers share: they ask their routing for a fused kernel once, or take the plain path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Generic, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from torchcaps.core import Capsules, Routed, UserError, require_choice, without_autocast
from torchcaps.routing import Parts, RoutesInParts, Routing, StoredVotes, UncastVotes, fused_path

from .vote import cast_votes

Backend = Literal["auto", "torch", "fused"]
Votes = TypeVar("Votes", UncastVotes, StoredVotes)

# the backward pass runs the forward pass again; no layer draws random numbers
recompute = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)


def require_capsules(layer: nn.Module, children: Capsules, dtype: torch.dtype | None = None) -> Capsules:
    """`children` when they are capsules, in that precision if there is one; else a clear error."""
    if not isinstance(children, Capsules):
        advice = "the activations of vector capsules are their lengths: Capsules(poses, poses.norm(dim=-1))"
        if isinstance(children, Routed):
            advice = "give it `capsules` of that"
        raise UserError(
            f"{type(layer).__name__} expects Capsules(poses, activations), got {type(children).__name__}; "
            f"{advice}"
        )
    poses, activations = children
    if poses.ndim < 3 or poses.shape[:-1] != activations.shape:
        raise UserError(
            f"{type(layer).__name__} expects poses (batch, ..., capsules, pose) and an activation for each "
            f"capsule, got {tuple(poses.shape)} and {tuple(activations.shape)}"
        )
    return children if dtype is None else Capsules(children.poses.to(dtype), children.activations.to(dtype))


def require_grid(layer: nn.Module, children: Capsules, types: int, pose: int) -> None:
    """Raise unless capsules stand on a grid, of so many types and so many dimensions."""
    shape = tuple(children.poses.shape)
    if len(shape) != 5:
        raise UserError(
            f"{type(layer).__name__} expects capsules on a grid, poses (batch, height, width, types, pose), "
            f"got {shape}"
        )
    if shape[3:] != (types, pose):
        raise UserError(
            f"{type(layer).__name__} expects {types} types of {pose} dimensions, got {shape[3]} of {shape[4]}"
        )


def require_routed(routed: Routed, votes: Tensor) -> Routed:
    """`routed` itself when a routing has answered `votes` as it should, else a clear error."""
    if not isinstance(routed, Routed):
        raise UserError(
            f"a routing returns Routed(poses, activations, coupling), this one a {type(routed).__name__}"
        )
    poses = votes.shape[:-3] + votes.shape[-2:]
    expected = {"poses": poses, "activations": poses[:-1], "coupling": votes.shape[:-1]}
    for name, field in zip(expected, routed, strict=True):
        if field is not None and field.shape != expected[name]:
            raise UserError(
                f"of votes {tuple(votes.shape)} a routing returns {name} {tuple(expected[name])}; this one "
                f"returns {tuple(field.shape)}"
            )
    return routed


def _is_exporting() -> bool:
    """Whether `torch.export` runs; which path is faster depends on sizes that it leaves open.

    `torch.compiler.is_exporting()` says so too, but in PyTorch 2.11 it is also true under `torch.compile`.
    """
    return torch.compiler._is_exporting_flag


class RoutedCaps(nn.Module, ABC, Generic[Votes]):
    """A layer in which children vote and a routing makes parents of the votes.

    Args:
        routing: What routes the votes.
        backend: "fused" routes in a fused kernel, "torch" is the plain reference, "auto" is the kernel
            wherever `fallback_reason` finds nothing against it.
    """

    weight: nn.Parameter

    def __init__(self, routing: Routing, backend: Backend) -> None:
        super().__init__()
        self.backend: Backend = require_choice("backend", backend, get_args(Backend))
        self.routing = routing

    @abstractmethod
    def _votes(self, children: Capsules, return_coupling: bool) -> Votes:
        """What the layer offers its routing, of children in its precision; a wrong size is an error."""

    @abstractmethod
    def _route_plain(self, votes: Votes) -> Routed:
        """Route by the plain path."""

    def forward(self, children: Capsules, *, return_coupling: bool = True) -> Routed:
        """Let the children vote, and route their votes to parents.

        Args:
            children: Poses and activations: (batch, in_caps, pose) and (batch, in_caps), or on a grid
                (batch, height, width, types, pose) and (batch, height, width, types).
            return_coupling: Without it the couplings are None where the fused kernel runs.

        Returns:
            Parents, (batch, out_caps, pose) or on a grid, with the couplings (..., in_caps, out_caps).
        """
        votes = self._votes(require_capsules(self, children, self.weight.dtype), return_coupling)
        with without_autocast(self.weight):
            if self.backend == "torch" or _is_exporting():
                return self._route_plain(votes)
            path = fused_path(self.routing, votes, insist=self.backend == "fused")
            if not isinstance(path, str):
                return path()
            if self.backend == "fused":
                raise UserError(f"the fused backend cannot be used here: {path}")
            return self._route_plain(votes)

    def fallback_reason(self, children: Capsules, *, return_coupling: bool = True) -> str | None:
        """Why "auto" would take the plain path for these children; None where it does not."""
        votes = self._votes(require_capsules(self, children, self.weight.dtype), return_coupling)
        path = fused_path(self.routing, votes)
        return path if isinstance(path, str) else None


def layers_with_backend(model: nn.Module) -> list[RoutedCaps[Any]]:
    """The layers of a model that choose between a fused kernel and the plain path."""
    return [layer for layer in model.modules() if isinstance(layer, RoutedCaps)]


class VotingCaps(RoutedCaps[UncastVotes]):
    """A layer whose children vote with matrices.

    Args:
        routing: What routes the votes.
        pose_rows: Rows of a pose that is a matrix.
        backend: As in `RoutedCaps`.
    """

    def __init__(self, routing: Routing, *, pose_rows: int, backend: Backend) -> None:
        super().__init__(routing, backend)
        self.pose_rows = pose_rows

    def _route_plain(self, votes: UncastVotes) -> Routed:
        if not torch.compiler.is_compiling() and isinstance(self.routing, RoutesInParts):
            parts = self.routing.batch_parts(votes)
            if parts is not None and parts.samples < len(votes.poses):
                return self._route_in_parts(votes, parts)
        cast = cast_votes(votes.poses, votes.weight, self.pose_rows)
        return require_routed(self.routing(cast, votes.activations), cast)

    def _route_in_parts(self, votes: UncastVotes, parts: Parts) -> Routed:
        route = partial(recompute, self._route_plain) if parts.recompute else self._route_plain
        split = (torch.split(field, parts.samples) for field in (votes.poses, votes.activations))
        routed = [
            route(votes._replace(poses=poses, activations=activations))
            for poses, activations in zip(*split, strict=True)
        ]
        return Routed(*(torch.cat(fields) for fields in zip(*routed, strict=True)))
