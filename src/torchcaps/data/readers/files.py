"""Finding and reading the files of a dataset, with errors that name the file and say what to do."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import MissingDataError, UserError

from ..api import DATASETS, DatasetInfo, Frame
from ..fit import fit_picture
from ..folders import as_bytes, opened_picture

MOST_UNPACKED = 1 << 30  # bytes; the largest file, of smallNORB, unpacks to 448 million
_CHUNK = 1 << 20


class DamagedFileError(UserError):
    """A file that is there but is not what it should be."""

    def __init__(self, path: Path, problem: str, dataset: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}; {_remedy(dataset)}")


def _remedy(dataset: str) -> str:
    is_published = bool(DATASETS[dataset].files)
    first = f"get it with `torchcaps data get {dataset}`, or name its" if is_published else "name another"
    return f"{first} folder with --data-dir or TORCHCAPS_DATA"


def search_folders(info: DatasetInfo, data_dir: Path) -> list[Path]:
    """Where the files of a dataset may lie; `data_dir` may be, or lie in, the dataset's own folder."""
    here = data_dir.absolute().parts
    places = []
    for parts in (Path(folder).parts for folder in info.folders):
        places.append(data_dir.joinpath(*parts))
        depths = range(1, len(parts) + 1)
        places += [data_dir.joinpath(*parts[depth:]) for depth in depths if here[-depth:] == parts[:depth]]
    return list(dict.fromkeys(places))


def locate_file(info: DatasetInfo, file_name: str, data_dir: Path) -> Path | None:
    """The first match for `file_name`, unpacked or as .gz, or None."""
    plain = file_name.removesuffix(".gz")
    for folder in search_folders(info, data_dir):
        for candidate in (folder / plain, folder / f"{plain}.gz"):
            if candidate.is_file():
                return candidate
    return None


def find_file(info: DatasetInfo, file_name: str, data_dir: Path) -> Path:
    """Like `locate_file`, but a file that is not there is an error that lists where it was looked for."""
    found = locate_file(info, file_name, data_dir)
    if found is None:
        size = next((file.size for file in info.files if Path(file.path).name == file_name), None)
        raise _missing(info, f"{file_name} ({size} bytes)" if size else file_name, data_dir)
    return found


def locate_folder(info: DatasetInfo, name: str, data_dir: Path) -> Path | None:
    """The first folder `name` in one of the dataset's places, or None."""
    places = (folder / name for folder in search_folders(info, data_dir))
    return next((place for place in places if place.is_dir()), None)


def find_folder(info: DatasetInfo, name: str, data_dir: Path) -> Path:
    """Like `locate_folder`, but a folder that is not there is an error like that of `find_file`."""
    found = locate_folder(info, name, data_dir)
    if found is None:
        raise _missing(info, f"a folder {name}", data_dir)
    return found


def _missing(info: DatasetInfo, what: str, data_dir: Path) -> MissingDataError:
    looked = ", ".join(str(folder) for folder in search_folders(info, data_dir))
    return MissingDataError(f"{what} is in none of {looked}; {_remedy(info.name)}")


def read_file(path: Path, dataset: str) -> bytes:
    """The contents of a file, unpacked where its name ends in .gz."""
    if path.suffix != ".gz":
        return path.read_bytes()
    parts, size = [], 0
    try:
        with gzip.open(path) as file:
            while size <= MOST_UNPACKED and (part := file.read(_CHUNK)):
                parts.append(part)
                size += len(part)
    except (EOFError, OSError, zlib.error) as error:
        problem = f"not a complete gzip file ({error}); it has {path.stat().st_size} bytes"
        raise DamagedFileError(path, problem, dataset) from error
    if size > MOST_UNPACKED:
        raise DamagedFileError(path, f"unpacks to more than {MOST_UNPACKED >> 20} MiB", dataset)
    return b"".join(parts)


def check_length(data: bytes, expected: int, path: Path, dataset: str) -> None:
    """An error unless the contents have the length that their header promises."""
    if len(data) != expected:
        problem = f"should hold {expected} bytes by its header, but holds {len(data)}"
        raise DamagedFileError(path, problem, dataset)


def read_photograph(path: Path, frame: Frame, dataset: str) -> UInt8[Tensor, "3 height width"]:
    """A photograph in colour, brought to the size of `frame`."""
    try:
        with opened_picture(path) as picture:
            framed = fit_picture(picture.convert("RGB"), *frame[:3])
    except UserError as error:
        raise DamagedFileError(path, str(error).removeprefix(f"{path} "), dataset) from error
    return as_bytes(framed)


def check_labels(labels: NDArray[Any], span: tuple[int, int], path: Path, dataset: str) -> None:
    """An error unless all labels lie between the ends of `span`."""
    if labels.size and not span[0] <= labels.min() <= labels.max() <= span[1]:  # also true of nan
        problem = f"labels should lie in {span[0]}..{span[1]}, but lie in {labels.min()}..{labels.max()}"
        raise DamagedFileError(path, problem, dataset)
