"""Files and plain data: a write replaces a file whole, a read names a damaged one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image
from safetensors import SafetensorError

from torchcaps.core import UserError

_DISK_ERRORS = frozenset(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO") if hasattr(errno, name)
)
_ABANDONED = 3600.0  # seconds after which the draft of a killed process is removed
_DRAFTS = f".*.{'[0-9a-f]' * 8}.draft"


class DiskError(UserError):
    """The disk is full or broken: no other file is written either until that is mended."""


def is_disk_error(error: BaseException) -> bool:
    """Whether the disk is full or broken; safetensors names the number of the error in its words alone."""
    named = re.search(r"\(os error (\d+)\)", str(error)) if isinstance(error, SafetensorError) else None
    return (int(named[1]) if named else getattr(error, "errno", None)) in _DISK_ERRORS


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a draft beside `path`, then put it in place; the old file stays if that fails.

    The file gets the permissions of the user's umask, whatever `write` gave the draft.
    """
    draft = path.parent / f".{path.name}.{secrets.token_hex(4)}.draft"  # also of a folder, which is refused
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path.parent)
        draft.touch(mode=0o666, exist_ok=False)
        permissions = draft.stat().st_mode
        write(draft)
        draft.chmod(permissions)  # safetensors writes files that only their owner may read
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        kind = DiskError if is_disk_error(error) else UserError
        raise kind(f"cannot write {path}: {reason}; what was there before is kept") from error
    finally:
        with suppress(OSError):  # where nothing can be written, nothing can be removed either
            draft.unlink(missing_ok=True)


@lru_cache(maxsize=1024)  # once for each folder: at every write, a folder of many files would be read again
def _remove_abandoned(folder: Path) -> None:
    """Remove old drafts, which processes left that were killed while they wrote."""
    for draft in folder.glob(_DRAFTS):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _ABANDONED:
                draft.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, whole or not at all."""
    write_atomically(path, lambda draft: draft.write_bytes(content))


def write_png(path: Path, picture: Image.Image) -> None:
    """Write a picture as PNG, whole or not at all."""
    write_atomically(path, lambda draft: picture.save(draft, format="PNG"))


def write_text(path: Path, text: str) -> None:
    """Write text, whole or not at all; a name that is in no encoding has question marks in it."""
    write_atomically(path, lambda draft: draft.write_text(text, encoding="utf-8", errors="replace"))


def write_json(path: Path, values: Any) -> None:
    """Write plain data as indented JSON; what JSON does not have, such as infinite numbers, is an error."""
    try:
        text = json.dumps(values, indent=1, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot write {path}: {error}; what was there before is kept") from error
    write_text(path, text + "\n")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write mappings, one on each line."""
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def checksum_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: Path) -> str:
    """The text of a file, without the mark that some editors put first; an error names one without text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8 ({error}); save it as UTF-8") from error


def read_json(path: Path) -> Any:
    """Plain data from a JSON file; a damaged one is an error that names it."""
    return _parsed(path, json.loads)


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a JSON file; anything else is an error that names it."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise _damaged(path, "no mapping of keys to values")
    return values


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The mappings in a file with one on each line."""
    rows = _parsed(path, lambda text: [json.loads(line) for line in text.splitlines()])
    if not all(isinstance(row, dict) for row in rows):
        raise _damaged(path, "a line that is no mapping of keys to values")
    return rows


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no JSON, or no text at all
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, problem: str) -> UserError:
    return UserError(f"{path} is damaged ({problem}); restore it, or delete it to start anew")
