"""The choice between a fused kernel and the plain path, which all layers make alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from torchcaps.core.errors import UserError

Backend = Literal["auto", "torch", "fused"]


def checked_backend(backend: Backend) -> Backend:
    """`backend` itself when there is one of that name, else a clear error."""
    if backend not in ("auto", "torch", "fused"):
        raise UserError(f"backend must be 'auto', 'torch' or 'fused', got {backend!r}")
    return backend


def takes_kernel(backend: Backend, ask: Callable[[], str | None]) -> bool:
    """Whether the fused kernel runs; `ask` gives what is against it, which "fused" makes an error.

    Nobody asks for the plain path: a reason may depend on sizes that an export leaves open.
    """
    if backend == "torch":
        return False
    reason = ask()
    if reason is not None and backend == "fused":
        raise UserError(f"the fused backend cannot be used here: {reason}")
    return reason is None


def reason_of_routing(routing: Any, *kinds: type) -> str | None:
    """Why a layer with fused kernels for `kinds` of routing has none for this one; None when it has."""
    if not isinstance(routing, kinds):
        return f"there is no fused kernel for {type(routing).__name__}"
    if routing._forward_hooks:  # type: ignore[attr-defined]
        return "a forward hook watches or changes the routing, and the fused kernel would not call it"
    return None
