"""Unpacking a downloaded tar archive without trusting the names inside it."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from torchcaps.core import UserError


def extract_tar(archive: Path, destination: Path, *, max_bytes: int = 4 << 30) -> list[Path]:
    """Unpack plain files below `destination` and return their paths.

    Refused are names that are absolute or climb with "..", links, devices, and more than `max_bytes` in all.
    Modes, owners and times are not restored. Files appear under their final names only when the whole archive
    was read, so that a refused or damaged one leaves nothing behind.
    """
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=destination) as scratch:
        try:
            names = _unpack(archive, Path(scratch), max_bytes)
            return [_move(Path(scratch) / name, destination / name) for name in names]
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise UserError(f"{archive} cannot be unpacked ({error})") from error


def _unpack(archive: Path, scratch: Path, max_bytes: int) -> list[PurePosixPath]:
    names: dict[PurePosixPath, None] = {}  # in order; of members with one name the last counts
    total = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            name = _checked_name(member, archive)
            if member.isdir():
                continue
            total += member.size
            if total > max_bytes:
                raise UserError(f"{archive} unpacks to more than {max_bytes} bytes")
            _write_member(tar, member, scratch / name)
            names[name] = None
    return list(names)


def _checked_name(member: tarfile.TarInfo, archive: Path) -> PurePosixPath:
    name = PurePosixPath(member.name)
    windows = PureWindowsPath(member.name)
    if name.is_absolute() or windows.drive or windows.root or ".." in (*name.parts, *windows.parts):
        raise UserError(
            f"{archive} has a member {member.name!r} that points outside the folder it unpacks to"
        )
    if not (member.isreg() or member.isdir()):
        raise UserError(f"{archive} has a member {member.name!r} that is neither a plain file nor a folder")
    return name


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:  # only for members that are not plain files
        raise UserError(f"{member.name!r} cannot be read from its archive")
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _move(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)
    return target
