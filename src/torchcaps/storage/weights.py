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
    """Write weights as safetensors, `info` as JSON in the header; the same content gives the same bytes."""
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in state.items()}
    metadata = {key: json.dumps(value) for key, value in info.items()}

    def write(draft: Path) -> None:
        save_file(tensors, draft, metadata=metadata)
        _sort_info(draft)

    write_atomically(path, write)


def _sort_info(path: Path) -> None:
    """Put the keys of `info` in order, in place: safetensors writes them in a random one."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        if "__metadata__" in header:
            header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        ordered = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        file.seek(8)
        file.write(ordered.ljust(size))


def wrong_kind(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> str:
    """Which tensor of `state` PyTorch would cut or misread on loading it into `own`; "" where none.

    It copies floating-point numbers into integers, and integers or complex numbers into floating-point ones,
    without a word.
    """
    for name, values in own.items():
        if name in state and state[name].is_floating_point() != values.is_floating_point():
            return f"{name} is of type {str(state[name].dtype).removeprefix('torch.')}"
    return ""


def load_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and header of a safetensors file."""
    if not path.is_file():
        raise MissingDataError(f"no weights at {path}; restore the file, or train again")
    try:
        with safe_open(path, framework="pt") as file:
            info = {key: json.loads(value) for key, value in (file.metadata() or {}).items()}
            return {name: file.get_tensor(name) for name in file.keys()}, info  # noqa: SIM118  not a mapping
    except (SafetensorError, ValueError, RecursionError) as error:  # also a header that is no JSON
        raise UserError(f"{path} is damaged ({error}); restore it or train again") from error
