"""Files of a run, each replaced as a whole: whenever the writer is killed, no reader meets half of one."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from torchcaps.core.errors import MissingDataError, UserError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in its place; what was there stays if that fails."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot write {path}: {reason}; what was there before is kept") from error
    finally:
        with suppress(OSError):  # where nothing can be written, nothing can be removed either
            draft.unlink(missing_ok=True)


def write_json(path: Path, values: Any) -> None:
    """Write plain data as indented JSON."""
    text = json.dumps(values, indent=1, allow_nan=False)
    write_atomically(path, lambda draft: draft.write_text(text + "\n"))


def read_json(path: Path) -> Any:
    """Plain data from a JSON file; a damaged one is an error that names it."""
    try:
        return json.loads(path.read_text())
    except ValueError as error:  # no JSON, or no text at all
        raise UserError(f"{path} is damaged ({error}); restore it, or delete it to start anew") from error


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
    except (SafetensorError, json.JSONDecodeError) as error:
        raise UserError(f"{path} is damaged ({error}); restore it or train again") from error


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values, so that they load without unpickling anything else."""

    def fill(draft: Path) -> None:
        try:
            with draft.open("wb") as file:
                torch.save(state, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # PyTorch hides a full disk behind an error of its own
                raise error.__context__ from None
            raise

    write_atomically(path, fill)


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """What `save_checkpoint` wrote; a damaged file is an error that says how to go on."""
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError as error:
        raise MissingDataError(f"no checkpoint at {path}") from error
    except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError, OSError) as error:
        message = str(error).partition("\n")[0]
        raise UserError(
            f"checkpoint {path} is damaged ({message}); delete it to start this run anew"
        ) from error
    if not isinstance(content, dict) or not content.keys() >= {"model", "optimizer", "progress", "rows"}:
        raise UserError(f"{path} is not the checkpoint of a run; delete it to start this run anew")
    return content
