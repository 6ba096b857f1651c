"""Fused kernels as PyTorch operators: `torch.compile` and CUDA graphs see one node each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchcaps.core import UserError


def operator(name: str, schema: str) -> Callable[..., Any]:
    """A decorator that registers a function of the given schema as `torchcaps::name`."""
    register: Callable[..., Any] = torch.library.custom_op
    return register(f"torchcaps::{name}", mutates_args=(), schema=schema)


def once_differentiable(backward: Any) -> None:
    """Let the second derivative of a kernel, whose `backward` is an operator, be an error that says more."""
    backward.register_autograd(_refuse)


def _refuse(ctx: Any, *grads: Any) -> None:
    del ctx, grads
    raise UserError(
        "fused kernels have no second derivatives; give the capsule layers the plain path before the forward "
        'pass: `for layer in model.modules(): layer.backend = "torch"`'
    )
