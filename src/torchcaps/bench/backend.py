"""Fused kernels of a model: whether there are any, and switching them on or off."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchcaps.layers import Backend, PrimaryCaps, RoutedCaps, layers_with_backend
from torchcaps.models import create_model

_ASKED = 8  # images: on a CPU the kernels are used from 6 on


def use_kernels(model: nn.Module, on: bool) -> None:
    """Let every layer that has a choice use a fused kernel where there is one, or the plain path."""
    backend: Backend = "auto" if on else "torch"
    for layer in model.modules():
        if isinstance(layer, PrimaryCaps | RoutedCaps):
            layer.backend = backend


@torch.enable_grad()
def kernel_free(name: str, device: torch.device, **options: object) -> bool:
    """Whether no layer of the model would use a fused kernel in training on this device."""
    model = create_model(name, **options).to(device)
    reasons: list[str | None] = []

    def ask(layer: Any, inputs: tuple[object, ...], settings: dict[str, object]) -> None:
        reasons.append(layer.fallback_reason(*inputs, **settings))

    for layer in layers_with_backend(model):
        layer.register_forward_pre_hook(ask, with_kwargs=True)
    model(torch.randn(_ASKED, *model.image_shape, device=device))
    return all(reason is not None for reason in reasons)
