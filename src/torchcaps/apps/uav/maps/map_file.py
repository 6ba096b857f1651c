"""Compiled maps: one file with the descriptors of all voxels, self-describing, checksummed, memory-mapped.

Layout: the magic bytes, the length of the description (8 bytes, little endian), the description as JSON
(padded with spaces to a multiple of 4,096 bytes), then one plane of stored values for each heading.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Plain, UserError, build_dataclass, convert
from torchcaps.storage import DiskError, is_disk_error, read_mapping, write_json

from ..filter import STORAGES, Codebook, Descriptors, Grid

_MAGIC = b"TCMAP\r\n1"
_PAGE = 4096
_KINDS = {"float32": "<f4", "float16": "<f2", "int8": "i1", "product": "u1"}


@dataclass(frozen=True)
class MapInfo:
    """What a map file says of itself.

    Attributes:
        grid: Its voxels.
        crs: Coordinate system of the grid, as text that pyproj reads.
        metres: Side of the patch of ground that a descriptor describes.
        model: Name and checksum of the network that made the descriptors.
        sources: Names of the images that the map was made from.
    """

    grid: Grid
    crs: str
    metres: float
    model: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class CompiledMap:
    """An opened map."""

    info: MapInfo
    descriptors: Descriptors
    path: Path

    @property
    def unknown_share(self) -> float:
        """Share of the cells whose ground is not known."""
        known = self.descriptors.known
        return 0.0 if known is None else 1 - float(known.mean())


Plane = NDArray[np.floating]  # the vectors of a heading as (row, column, component)


def write_map(
    path: Path,
    info: MapInfo,
    book: Codebook,
    size: int,
    plane_of: Callable[[int], Plane],
    *,
    made_of: str = "",
    known: NDArray[np.bool_] | None = None,
) -> None:
    """Write a map heading by heading; a call that was cut off goes on where it ended.

    Args:
        path: Where the map will be; until it is whole it stands beside it as `.partial`.
        info: What the map says of itself.
        book: How descriptors are stored.
        size: Components of a descriptor.
        plane_of: Gives the vectors of a heading.
        made_of: A checksum of what it makes them of; with another one, a call does not go on.
        known: Which cells (row, column) are candidates; None: all.
    """
    partial, progress = (path.with_suffix(path.suffix + ending) for ending in (".partial", ".progress"))
    head = {**_head(info, book, size), "known": _packed(known)}
    task = {"head": head, "made_of": made_of}
    digests = _resumable(partial, progress, task)
    with _naming(partial), partial.open("r+b" if digests else "w+b") as file:
        for heading in range(len(digests), info.grid.headings):
            stored = _checked(book.encode(plane_of(heading)), head).tobytes()
            file.seek(heading * len(stored))
            file.write(stored)
            file.flush()
            os.fsync(file.fileno())
            digests.append(hashlib.sha256(stored).hexdigest())
            write_json(progress, {**task, "planes": digests})
    _join(partial, path, {**head, "planes": digests})
    progress.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say of the file at `path` that the disk is full or broken, which the system says of no file."""
    try:
        yield
    except OSError as error:
        if not is_disk_error(error):
            raise
        raise DiskError(
            f"cannot write {path}: {error.strerror}; mend that, and the same command goes on"
        ) from error


def open_map(path: Path) -> CompiledMap:
    """Map a file into memory after checking its description and its length."""
    head, start = _read_head(path)
    shape = _stored_shape(head)
    expected = start + int(np.prod(shape)) * np.dtype(_KINDS[head["storage"]]).itemsize
    found = path.stat().st_size
    if found != expected:
        raise UserError(
            f"{path} has {found:,} bytes where its description asks for {expected:,}: copy it anew"
        )
    values = np.memmap(path, _KINDS[head["storage"]], "r", start, shape)
    return CompiledMap(_info(head), Descriptors(values, _book(head), _known(head)), path)


def verify_map(opened: CompiledMap) -> None:
    """Compare every plane with its checksum."""
    head, _ = _read_head(opened.path)
    for heading, digest in enumerate(head["planes"]):
        if hashlib.sha256(opened.descriptors.values[heading].tobytes()).hexdigest() != digest:
            raise UserError(f"{opened.path} is damaged at heading {heading}: compile or copy it anew")


def _head(info: MapInfo, book: Codebook, size: int) -> Plain:
    parts = size if book.centres is None else len(book.centres)
    return {
        "grid": asdict(info.grid),
        "crs": info.crs,
        "metres": info.metres,
        "model": info.model,
        "sources": list(info.sources),
        "storage": book.storage,
        "parts": parts,
        "scales": None if book.scales is None else book.scales.tolist(),
        "centres": None if book.centres is None else book.centres.tolist(),
    }


def _info(head: Plain) -> MapInfo:
    return build_dataclass(MapInfo, {each.name: head[each.name] for each in fields(MapInfo)}, "a map")


def _is_sound(head: Plain) -> bool:
    """Whether the parts of a description fit each other; compiled code trusts them."""
    fits = _book(head).fits(convert(int, head["parts"], "parts"))
    known = _known(head)
    shows_ground = known is None or bool(known.any())
    planes = len(head["planes"]) == _info(head).grid.headings
    return fits and planes and shows_ground and head["storage"] in STORAGES


def _packed(known: NDArray[np.bool_] | None) -> str | None:
    """Cells as text: bits, compressed with a checksum; None where all are known."""
    if known is None or known.all():
        return None
    return base64.b64encode(zlib.compress(np.packbits(known).tobytes())).decode()


def _known(head: Plain) -> NDArray[np.bool_] | None:
    """The cells of a description; maps of before it had them know all."""
    if head.get("known") is None:
        return None
    grid = Grid(**head["grid"])
    cells = grid.rows * grid.columns
    reader = zlib.decompressobj()
    bits = reader.decompress(base64.b64decode(head["known"], validate=True), cells // 8 + 2)
    if len(bits) != -(-cells // 8) or not reader.eof:
        raise ValueError("the known cells do not fit the grid")
    flat = np.unpackbits(np.frombuffer(bits, np.uint8), count=cells).astype(bool)
    return flat.reshape(grid.rows, grid.columns)


def _book(head: Plain) -> Codebook:
    scales, centres = (
        None if head[key] is None else np.asarray(head[key], np.float32) for key in ("scales", "centres")
    )
    return Codebook(head["storage"], scales, centres)


def _stored_shape(head: Plain) -> tuple[int, int, int, int]:
    grid = Grid(**head["grid"])
    return grid.headings, grid.rows, int(head["parts"]), grid.columns


def _checked(stored: NDArray[np.generic], head: Plain) -> NDArray[np.generic]:
    if stored.shape != _stored_shape(head)[1:]:
        raise UserError(f"a heading of {stored.shape} does not fit a map of {_stored_shape(head)[1:]}")
    return stored.astype(_KINDS[head["storage"]], copy=False)


def _resumable(partial: Path, progress: Path, task: Plain) -> list[str]:
    """The checksums of the planes that an earlier call has written for the same map."""
    if not (partial.is_file() and progress.is_file()):
        return []
    earlier, head = read_mapping(progress), task["head"]
    planes = earlier.get("planes")
    is_same = {key: earlier.get(key) for key in task} == json.loads(json.dumps(task))
    if not is_same or not isinstance(planes, list):
        return []
    kind, shape = np.dtype(_KINDS[head["storage"]]), _stored_shape(head)[1:]
    whole = partial.stat().st_size // (math.prod(shape) * kind.itemsize)
    return planes[:whole]


def _join(partial: Path, path: Path, head: Plain) -> None:
    """Put the description before the planes and give the file its name."""
    text = json.dumps({**head, "checksum": _checksum(head)}).encode()
    text += b" " * (-(len(_MAGIC) + 8 + len(text)) % _PAGE)
    whole = path.with_suffix(path.suffix + ".whole")
    with _naming(whole), whole.open("wb") as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        with partial.open("rb") as planes:
            shutil.copyfileobj(planes, file)
        file.flush()
        os.fsync(file.fileno())
    whole.replace(path)
    partial.unlink()


def _checksum(head: Plain) -> str:
    """Of a description: another digit in its corner or its scales would move every estimate."""
    return hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()


def _read_head(path: Path) -> tuple[Plain, int]:
    if not path.is_file():
        raise UserError(f"no map at {path}: make one with torchcaps uav compile-map")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UserError(
                f"{path} is no compiled map of this version: make one with torchcaps uav compile-map"
            )
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if 0 < length < (1 << 28) else b""
    try:
        head = json.loads(text)
        stated = head.pop("checksum", None)  # earlier maps have none
        is_sound = stated in (None, _checksum(head)) and _is_sound(head)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise UserError(f"the description of {path} is damaged: copy it anew") from error
    if not is_sound:
        raise UserError(f"the description of {path} is damaged: copy it anew")
    return head, len(_MAGIC) + 8 + length
