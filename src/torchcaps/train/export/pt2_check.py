"""Checks of a .pt2 file, because PyTorch runs some of what it finds there while it loads.

The loader of PyTorch unpickles weights, constants and example inputs that ask for it, loads compiled code,
evaluates size expressions and guards, and resolves operators by name. Files of `export_run` hold tensors as
raw bytes and operators of a short list; anything else is refused. The checked entries are written into a new
archive, and PyTorch reads that one: two readers can see different entries in one crafted file.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torchcaps.core import UserError

from .card import CARD
from .operators import OPERATORS

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
    "expr_str": re.compile(r"(Mul|Add|Min|Max|Integer|Symbol|positive|integer|True|'s\d+'|[\d(),= ])+"),
    "in_spec": _TREE,
    "out_spec": _TREE,
    "name": re.compile(r"[\w.]*"),
}


_DAMAGE = (zipfile.BadZipFile, KeyError, ValueError, RuntimeError, NotImplementedError, EOFError)


class Checked(NamedTuple):
    """What of a file PyTorch may load, and the text of its card, None if it has none."""

    archive: bytes
    card: str | None


def check_program(content: bytes, path: Path) -> Checked:
    """A new archive of the entries of a .pt2 file; one that could make the loader run code is refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = _entries(archive, len(content), path)
        for name in _CONFIGS:
            _check_config(json.loads(entries[name]), path)
        _check_graph(json.loads(entries["models/model.json"]), path)
        if entries["data/sample_inputs/model.pt"]:
            raise _refusal(path, "pickled example inputs")
        card = entries.get(f"extra/{CARD}")
        return Checked(_archive_of(entries), None if card is None else card.decode())
    except UserError:
        raise
    except _DAMAGE as error:  # also an encrypted entry, deep nesting, and text that is not UTF-8
        raise UserError(f"{path} cannot be read as a .pt2 file: {error}") from error


def _entries(archive: zipfile.ZipFile, size: int, path: Path) -> dict[str, bytes]:
    """Entries by their name inside the one top folder; all are stored as they are, so none can grow."""
    infos = archive.infolist()
    tops = {info.filename.partition("/")[0] for info in infos}
    names = [info.filename.partition("/")[2] for info in infos]
    if len(tops) > 1 or len(set(names)) < len(names):
        raise _refusal(path, "an entry twice or outside its one folder")
    for info, name in zip(infos, names, strict=True):
        if not _ENTRIES.fullmatch(name):
            raise _refusal(path, f"an entry {info.filename!r}")
        if info.compress_type != zipfile.ZIP_STORED:
            raise _refusal(path, f"a compressed entry {info.filename!r}")
    if sum(info.file_size for info in infos) > size:
        raise _refusal(path, "entries that overlap")
    return {name: archive.read(info) for info, name in zip(infos, names, strict=True)}


def _archive_of(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"model/{name}", content)
    return buffer.getvalue()


def _check_config(config: object, path: Path) -> None:
    for key, value in _items(config):
        if key == "use_pickle" and value is not False:
            raise _refusal(path, "pickled tensors")


def _check_graph(graph: object, path: Path) -> None:
    for key, value in _items(graph):
        if key == "guards_code" and value:
            raise _refusal(path, "guards written as code")
        if not isinstance(value, str):
            continue
        if key in ("target", "as_operator") and value not in OPERATORS:
            raise _refusal(path, f"the operator {value[:60]!r}")
        if key in _ALLOWED and not _ALLOWED[key].fullmatch(value):
            raise _refusal(path, f"{key} {value[:60]!r}")


def _items(tree: object) -> Iterator[tuple[str, object]]:
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
