"""Comparing the files of a dataset with what their publisher released."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core import MissingDataError, UserError

from .api import (
    FOLDER_PREFIX,
    SPLITS,
    DatasetInfo,
    RemoteFile,
    Split,
    dataset_info,
    load_dataset,
    resolve_data_dir,
)
from .check_folder import read_folder
from .readers.files import DamagedFileError, locate_file, locate_folder


@dataclass(frozen=True)
class FileFinding:
    """What was found out about one file; None means that it could not be told.

    A file can be readable and still differ from the published one, for example when it was packed again.
    """

    path: Path
    is_present: bool
    is_size_ok: bool | None = None
    is_checksum_ok: bool | None = None
    is_readable: bool | None = None
    note: str = ""

    @property
    def is_ok(self) -> bool:
        """Nothing about this file is known to be wrong."""
        return self.is_present and False not in (self.is_size_ok, self.is_checksum_ok, self.is_readable)


def check_dataset(name: str, data_dir: Path | str | None = None) -> list[FileFinding]:
    """One finding for each file of a dataset, with the files read as training would read them.

    A dataset without published files gives an empty list, or the error of reading it: both splits of a folder
    of images, one of any other.
    """
    folder = resolve_data_dir(data_dir)
    if name.startswith(FOLDER_PREFIX):
        read_folder(name, folder)
        return []
    info = dataset_info(name, data_dir)
    if not info.files:
        load_dataset(name, SPLITS[-1], folder)
        return []
    problems = {split: _reading_problem(name, split, folder) for split in SPLITS}
    return [_check_file(info, file, folder, problems) for file in unpacked_files(info)]


def unpacked_files(info: DatasetInfo) -> list[RemoteFile]:
    """The files that readers open: an archive counts as its contents."""
    return [part for file in info.files for part in (file.contains or (file,))]


def matches_checksum(path: Path, file: RemoteFile) -> bool | None:
    """Whether `path` is byte for byte the published file; None where no checksum was published."""
    if file.sha256 is None and file.md5 is None:
        return None
    kind, expected = ("sha256", file.sha256) if file.sha256 else ("md5", file.md5)
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, kind).hexdigest() == expected


def has_files(name: str, data_dir: Path | str | None = None) -> bool:
    """Whether all published files of a dataset are there, whatever is in them."""
    info, folder = dataset_info(name, data_dir), resolve_data_dir(data_dir)
    return all(_locate(info, file, folder) for file in unpacked_files(info))


def count_images(folder: Path) -> int:
    """The files in the folders of a folder, hidden ones aside."""
    return sum(path.is_file() for path in folder.glob("*/[!.]*"))


def _locate(info: DatasetInfo, file: RemoteFile, data_dir: Path) -> Path | None:
    locate = locate_file if file.num_images is None else locate_folder
    return locate(info, Path(file.path).name, data_dir)


def _reading_problem(name: str, split: Split, data_dir: Path) -> UserError | None:
    try:
        load_dataset(name, split, data_dir)
    except UserError as error:
        return error
    return None


def _check_file(
    info: DatasetInfo, file: RemoteFile, data_dir: Path, problems: dict[Split, UserError | None]
) -> FileFinding:
    path = _locate(info, file, data_dir)
    if path is None:
        return FileFinding(data_dir / file.path, is_present=False, note="missing")
    is_readable, note = _readability(path, problems[file.split] if file.split else None)
    if file.num_images is not None:
        count = count_images(path)
        note = note or f"{count} of {file.num_images} images"
        return FileFinding(path, True, count == file.num_images, None, is_readable, note)
    if path.name != Path(file.path).name:
        return FileFinding(
            path, True, is_readable=is_readable, note=note or "unpacked: only the packed file has a checksum"
        )
    size = path.stat().st_size
    is_size_ok = None if file.size is None else size == file.size
    if is_size_ok is False:
        note = note or f"{size:,} bytes, the published file has {file.size:,}"
    is_checksum_ok = is_size_ok is not False and matches_checksum(path, file)
    return FileFinding(path, True, is_size_ok, is_checksum_ok, is_readable, note)


def _readability(path: Path, problem: UserError | None) -> tuple[bool | None, str]:
    if problem is None:
        return True, ""
    if isinstance(problem, DamagedFileError):
        is_in = path in (problem.path, *problem.path.parents)
        return (False, str(problem)) if is_in else (None, "")
    return None, "" if isinstance(problem, MissingDataError) else str(problem)
