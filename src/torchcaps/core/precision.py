"""Where mixed precision must not reach."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """A region in which products keep the dtype of their inputs, on the device of `tensor`.

    Tensors without data have nothing to cast, and no autocast: on `meta` a model tells its shapes. Asking
    first costs little beside entering the region, and every layer and routing does so.
    """
    kind = tensor.device.type
    is_cast = kind != "meta" and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if is_cast else nullcontext()
