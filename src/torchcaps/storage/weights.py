"""Weights as safetensors files, with what they belong to in the header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from torchcaps.core import MissingDataError, UserError

from .files import write_atomically


def save_weights(path: Path, state: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write weights as safetensors, with `info` as JSON in the header."""
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in state.items()}
    metadata = {key: json.dumps(value) for key, value in info.items()}
    write_atomically(path, lambda draft: save_file(tensors, draft, metadata=metadata))


def load_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and header of a safetensors file."""
    if not path.is_file():
        raise MissingDataError(f"no weights at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            info = {key: json.loads(value) for key, value in (file.metadata() or {}).items()}
            return {name: file.get_tensor(name) for name in file.keys()}, info  # noqa: SIM118  not a mapping
    except (SafetensorError, ValueError, RecursionError) as error:  # also a header that is no JSON
        raise UserError(f"{path} is damaged ({error}); restore it or train again") from error
