"""Fused kernels as PyTorch operators: `torch.compile` and CUDA graphs see one node each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def operator(name: str, schema: str) -> Callable[..., Any]:
    """A decorator that registers a function of the given schema as `torchcaps::name`."""
    register: Callable[..., Any] = torch.library.custom_op
    return register(f"torchcaps::{name}", mutates_args=(), schema=schema)
