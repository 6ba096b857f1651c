"""The choice between a fused kernel and the plain path, which all layers make alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

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
    """Why a layer with fused kernels for `kinds` of routing has none for this one; None when it has.

    A class derived from one of them may route in another way, so it has none.
    """
    if type(routing) not in kinds:
        return f"there is no fused kernel for {type(routing).__name__}"
    if is_watched(routing):
        return "a hook watches or changes the routing, and the fused kernel would not call it"
    if not torch.compiler.is_compiling() and _is_transformed():
        return "the fused kernels know reverse derivatives alone, not the transforms of torch.func"
    return None


def is_watched(routing: nn.Module) -> bool:
    """Whether hooks are to be called with whatever goes through a routing."""
    hooks = (
        routing._forward_hooks,
        routing._forward_pre_hooks,
        routing._backward_hooks,
        routing._backward_pre_hooks,
    )
    return any(hooks)


def _is_transformed() -> bool:
    """Whether torch.func or forward-mode derivatives are under way, which would be zero without a word."""
    is_forward_mode = torch.autograd.forward_ad._current_level >= 0
    return is_forward_mode or torch._C._are_functorch_transforms_active()
