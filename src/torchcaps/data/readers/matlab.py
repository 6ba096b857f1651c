"""MATLAB files, unpacked before they are parsed: a small one may hold more than the memory."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

from torchcaps.core import need

from ..api import DATASETS
from . import files
from .files import DamagedFileError

_HEADER, _TAG = 128, 8  # bytes of a file's header, and of the kind and size before each variable
_COMPRESSED = 15  # the kind of a variable that zlib has packed


def read_matlab(path: Path, dataset: str, names: list[str]) -> dict[str, Any]:
    """Those of the named variables that a file of the dataset has."""
    loadmat = need("scipy.io", f"reading {dataset}").loadmat
    try:
        content = loadmat(BytesIO(_unpacked(path, dataset)), variable_names=names)
    except DamagedFileError:
        raise
    except Exception as error:  # scipy raises a dozen kinds for damaged files
        published = (file.size for file in DATASETS[dataset].files if file.path.endswith(path.name))
        expected = "".join(f"expected {size} bytes, " for size in published)
        problem = f"not a complete MATLAB file ({error}); {expected}found {path.stat().st_size}"
        raise DamagedFileError(path, problem, dataset) from error
    return {name: content[name] for name in names if name in content}


def _unpacked(path: Path, dataset: str) -> bytes:
    """A file with its compressed variables unpacked, up to as much as a dataset can hold."""
    packed = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(packed[126:_HEADER])
    if order is None:  # of a version that knows no compression, or no such file: scipy says which
        return packed
    parts, start, left = [packed[:_HEADER]], _HEADER, files.MOST_UNPACKED
    while start < len(packed):
        kind, size = struct.unpack(f"{order}II", packed[start : start + _TAG])
        part = packed[start : start + _TAG + size]
        if len(part) < _TAG + size:
            raise EOFError("it ends within a variable")
        if kind == _COMPRESSED:
            part = zlib.decompressobj().decompress(part[_TAG:], left + 1)
        start, left = start + _TAG + size, left - len(part)
        if left < 0:
            raise DamagedFileError(path, f"unpacks to more than {files.MOST_UNPACKED >> 20} MiB", dataset)
        parts.append(part)
    return b"".join(parts)
