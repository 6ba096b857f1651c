"""Where mixed precision must not reach."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """A region in which products keep the dtype of their inputs, on the device of `tensor`.

    The device `meta`, whose tensors have shapes and no data, knows no autocast. Autocast is switched off only
    where it is on, because that takes longer than to ask, and every layer and routing does it.
    """
    kind = tensor.device.type
    is_cast = kind != "meta" and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if is_cast else nullcontext()
