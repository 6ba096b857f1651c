"""What a .pt2 file must not hold, for PyTorch runs some of what it finds there while reading.

The loader of PyTorch unpickles weights, constants and example inputs that ask for it, loads compiled code,
evaluates size expressions and guards, and resolves operators by name. Files of `export_run` need none but
tensors stored as raw bytes and operators of ATen; anything else is refused before the loader sees the file.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchcaps.core.errors import UserError

from .card import CARD

_ENTRIES = re.compile(
    r"data/weights/weight_\d+|data/constants/tensor_\d+|data/(weights|constants)/model_\1_config\.json"
    r"|data/sample_inputs/model\.pt|models/model\.json|extra/" + re.escape(CARD) + r"|archive_format"
    r"|archive_version|byteorder|\.data/(version|serialization_id)|\.format_version|\.storage_alignment"
)
_CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
_TREE = re.compile(
    r'("type"|"context"|"children_spec"|"builtins\.(tuple|dict)"|"null"|"\[\]"|null|1|[\[\]{},: ])+'
)
_ALLOWED = {
    "target": re.compile(r"torch\.ops\.(aten\.\w+\.\w+|higher_order\.wrap_with_autocast)"),
    "as_operator": re.compile(r"torch\.ops\.aten\.\w+\.\w+"),
    "expr_str": re.compile(r"(Mul|Add|Integer|Symbol|positive|integer|True|'s\d+'|[\d(),= ])+"),
    "in_spec": _TREE,
    "out_spec": _TREE,
    "name": re.compile(r"[\w.]*"),
}


def check_program(content: bytes, path: Path) -> str | None:
    """Refuse a file that could make the loader run code; the text of its card, None if it has none."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = _entries(archive, path)
            for name in _CONFIGS:
                _check_config(json.loads(entries[name]), path)
            _check_graph(json.loads(entries["models/model.json"]), path)
            if entries["data/sample_inputs/model.pt"]:
                raise _refusal(path, "pickled example inputs")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path} cannot be read as a .pt2 file: {error}") from error
    card = entries.get(f"extra/{CARD}")
    return None if card is None else card.decode()


def _entries(archive: zipfile.ZipFile, path: Path) -> dict[str, bytes]:
    """Entries by their name inside the one top folder; of weights and constants the names are enough."""
    found: dict[str, bytes] = {}
    tops = {info.filename.partition("/")[0] for info in archive.infolist()}
    for info in archive.infolist():
        name = info.filename.partition("/")[2]
        if len(tops) > 1 or name in found or not _ENTRIES.fullmatch(name):
            raise _refusal(path, f"an entry {info.filename!r}")
        is_tensor = re.fullmatch(r"data/(weights|constants)/\w+_\d+", name)
        found[name] = b"" if is_tensor else archive.read(info)
    return found


def _check_config(config: Any, path: Path) -> None:
    for key, value in _items(config):
        if key == "use_pickle" and value is not False:
            raise _refusal(path, "pickled tensors")


def _check_graph(graph: Any, path: Path) -> None:
    for key, value in _items(graph):
        if key == "guards_code" and value:
            raise _refusal(path, "guards written as code")
        if key in _ALLOWED and isinstance(value, str) and not _ALLOWED[key].fullmatch(value):
            raise _refusal(path, f"{key} {value[:60]!r}")


def _items(tree: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key, value
            yield from _items(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _items(value)


def _refusal(path: Path, what: str) -> UserError:
    return UserError(
        f"{path} holds {what}, which torchcaps export does not write and reading might run as code; "
        "it was not opened"
    )
