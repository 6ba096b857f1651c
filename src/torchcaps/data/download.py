"""Fetching a dataset from its publisher."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

from torchcaps.core import UserError, need
from torchcaps.storage import one_at_a_time

from .api import SPLITS, RemoteFile, dataset_info, load_dataset, resolve_data_dir
from .archive import extract_tar
from .check import count_images, matches_checksum


def get_dataset(name: str, data_dir: Path | str | None = None, progress: bool = False) -> list[Path]:
    """Download what is missing or damaged, verify it, unpack archives, and return the paths of all files.

    A file whose checksum is already right is not fetched again; one whose checksum is wrong is replaced.
    Files appear under their final names only when they are complete. Archives are removed once unpacked.
    Of several processes, one fetches while the others wait.
    A dataset that nobody publishes file by file is read: an error says where its files come from.
    """
    info, folder = dataset_info(name, data_dir), resolve_data_dir(data_dir)
    if not any(file.url for file in info.files):
        load_dataset(name, SPLITS[-1], folder)
        return [folder / file.path for file in info.files]
    return [path for file in info.files for path in _get_file(file, folder, progress)]


def _get_file(file: RemoteFile, data_dir: Path, progress: bool) -> list[Path]:
    if _wrong_parts(file, data_dir):
        with one_at_a_time(data_dir):
            if _wrong_parts(file, data_dir):  # nobody else fetched it meanwhile
                _fetch_and_unpack(file, data_dir, progress)
    return [data_dir / part.path for part in file.contains or (file,)]


def _fetch_and_unpack(file: RemoteFile, data_dir: Path, progress: bool) -> None:
    fetched = _fetch(file, data_dir, progress)
    if not file.contains:
        return
    extract_tar(fetched, data_dir)
    if wrong := _wrong_parts(file, data_dir):
        raise UserError(f"{file.path} from {file.url} did not unpack to the published {', '.join(wrong)}")
    fetched.unlink()


def _wrong_parts(file: RemoteFile, data_dir: Path) -> list[str]:
    """The file, or what it unpacks to, where it is missing or damaged."""
    return [part.path for part in file.contains or (file,) if not _is_good(data_dir / part.path, part)]


def _is_good(path: Path, file: RemoteFile) -> bool:
    if file.num_images is not None:
        return count_images(path) == file.num_images
    return path.is_file() and matches_checksum(path, file) is not False


def _fetch(file: RemoteFile, data_dir: Path, progress: bool) -> Path:
    pooch = _import_pooch()
    target = data_dir / file.path
    known_hash = f"sha256:{file.sha256}" if file.sha256 else f"md5:{file.md5}" if file.md5 else None
    try:
        pooch.retrieve(
            file.url,
            known_hash,
            fname=target.name,
            path=target.parent,
            progressbar=progress and importlib.util.find_spec("tqdm") is not None,
        )
    except (OSError, ValueError) as error:  # no connection, or a wrong checksum
        raise UserError(f"{file.url} could not be fetched: {error}") from error
    return target


def _import_pooch() -> Any:
    pooch = need("pooch", "downloading")
    pooch.get_logger().setLevel(logging.WARNING)
    return pooch
