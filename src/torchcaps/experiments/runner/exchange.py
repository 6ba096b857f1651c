"""Results from other machines: a folder, or one small archive of result files."""

from __future__ import annotations

import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from torchcaps.core import MissingDataError, UserError, reason_of
from torchcaps.storage import read_json, write_atomically, write_json

from ..plan import Experiment
from ..records import BUDGETS, RunResult
from .make import LEFT_BY_RUNS

_RESULT = re.compile(rf"(?:\./)?([\w.-]+/(?:{'|'.join(BUDGETS)})/[\w.-]+)/result\.json")
_MOST_BYTES = 8 * 2**20  # of one result file
_DAMAGE = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RecursionError,
    MemoryError,  # of a header that says that it is larger than memory
    OverflowError,
)


def pack_runs(out: Path, archive: Path) -> int:
    """Write the results and errors of all runs below `out` to a .tar.gz; return how many files it holds.

    Results that the archive holds already and `out` does not stay in it.
    """
    paths = (path for name in LEFT_BY_RUNS for path in _files_of_runs(out, name))
    texts = {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}
    if archive.is_file():
        kept = {f"{place}/result.json": result for place, result in _results_packed(archive)}
        texts = {name: json.dumps(result, indent=1).encode() for name, result in kept.items()} | texts

    def fill(draft: Path) -> None:
        with tarfile.open(draft, "w:gz") as packed:
            for name, text in sorted(texts.items()):
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                packed.addfile(entry, BytesIO(text))

    write_atomically(archive, fill)
    return len(texts)


def merge_runs(experiment: Experiment, source: Path, out: Path) -> int:
    """Take over results made elsewhere, but none that are here already; return how many were new."""
    merged = 0
    for place, result in _results_in(source):
        try:
            RunResult.from_json(result)
        except UserError as error:
            raise UserError(f"{source}: {place}/result.json is not the result of a run: {error}") from error
        target = out / place / "result.json"
        if place.split("/")[0] == experiment.slug and not target.is_file():
            write_json(target, result)
            merged += 1
    return merged


def _results_in(source: Path) -> Iterator[tuple[str, object]]:
    """Folder, as experiment/budget/run, and content of each result."""
    if source.is_dir():
        for path in _files_of_runs(source, "result.json"):
            yield path.parent.relative_to(source).as_posix(), read_json(path)
    elif source.is_file():
        yield from _results_packed(source)
    else:
        raise MissingDataError(f"there are no runs at {source}: neither a folder nor an archive")


def _files_of_runs(out: Path, name: str) -> list[Path]:
    """The files of that name that runs left in their folders; those of runs set aside are not among them."""
    return sorted(path for budget in BUDGETS for path in out.glob(f"*/{budget}/*/{name}"))


def _results_packed(archive: Path) -> Iterator[tuple[str, object]]:
    """Read the members that are named like results; nothing is unpacked, other members are passed over."""
    try:
        with tarfile.open(archive) as packed:
            for member in packed:
                place = _place_of(member)
                file = None if place is None else packed.extractfile(member)
                if place is not None and file is not None:
                    yield place, json.loads(file.read())
    except _DAMAGE as error:
        raise UserError(f"{archive} is no archive of results that can be read: {reason_of(error)}") from error


def _place_of(member: tarfile.TarInfo) -> str | None:
    """The folder that the name of a result in an archive gives; None for other members."""
    named = _RESULT.fullmatch(member.name)
    if named is None or ".." in named[1].split("/"):
        return None
    return named[1] if member.isfile() and member.size <= _MOST_BYTES else None
