"""Checks of an .onnx file before ONNX Runtime loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchcaps.core import UserError, need


def check_model(content: bytes, path: Path) -> None:
    """Refuse a file that takes tensors from other files: the runtime would read them from the disk."""
    onnx = need("onnx", "running an .onnx file")
    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:  # protobuf's own classes come without types
        raise UserError(f"{path} cannot be read as an ONNX file: {error}") from error
    if _names_files(model, onnx.TensorProto):
        raise UserError(
            f"{path} takes tensors from other files, which torchcaps export does not write; it was not opened"
        )


def _names_files(message: Any, tensor: type) -> bool:
    """Whether a tensor anywhere in a message lies in another file."""
    if isinstance(message, tensor):
        return bool(message.data_location == tensor.EXTERNAL or message.external_data)  # type: ignore[attr-defined]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        parts = [value] if hasattr(value, "ListFields") else value
        if any(_names_files(part, tensor) for part in parts):
            return True
    return False
