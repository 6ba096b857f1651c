"""smallNORB: stereo pairs of toys, in binary matrices that are named .mat but are not MATLAB's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from numpy.typing import NDArray
from torch import Tensor

from ..api import DATASETS, DatasetInfo, RemoteFile, Split
from ..examples import LabelledImages
from .files import DamagedFileError, check_labels, check_length, find_file, read_file

STEMS: dict[Split, str] = {
    "train": "smallnorb-5x46789x9x18x6x2x96x96-training",
    "test": "smallnorb-5x01235x9x18x6x2x96x96-testing",
}
MATRIX_TYPES: dict[int, type[np.generic]] = {
    0x1E3D4C51: np.float32,
    0x1E3D4C53: np.float64,
    0x1E3D4C54: np.int32,
    0x1E3D4C55: np.uint8,
    0x1E3D4C56: np.int16,
}


@dataclass(frozen=True, eq=False)
class SmallNorbInfo:
    """How each pair was taken, in the order of the images."""

    instance: Int64[Tensor, " count"]  # 0..9 within its category
    elevation: Int64[Tensor, " count"]  # degrees above the horizon: 30, 35, ..., 70
    azimuth: Int64[Tensor, " count"]  # degrees: 0, 20, ..., 340
    lighting: Int64[Tensor, " count"]  # 0..5


def read_smallnorb(data_dir: Path, split: Split) -> LabelledImages:
    """One split of smallNORB; the two channels are the left and the right camera."""
    image_path, images = _read_part(data_dir, split, "dat")
    label_path, labels = _read_part(data_dir, split, "cat")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (2, 96, 96):
        problem = f"should hold bytes of shape (count, 2, 96, 96), but holds {images.dtype} {images.shape}"
        raise DamagedFileError(image_path, problem, "smallnorb")
    _check_rows(label_path, labels, (len(images),))
    check_labels(labels, (0, 4), label_path, "smallnorb")
    return LabelledImages(
        torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)), SMALLNORB.classes
    )


def read_smallnorb_info(data_dir: Path, split: Split) -> SmallNorbInfo:
    """Instance, elevation, azimuth (both in degrees) and lighting of every pair of a split."""
    path, table = _read_part(data_dir, split, "info")
    _check_rows(path, table, (len(table), 4))
    instance, elevation, azimuth, lighting = torch.from_numpy(table.astype(np.int64)).unbind(1)
    return SmallNorbInfo(instance, 30 + 5 * elevation, 10 * azimuth, lighting)


def read_matrix(path: Path) -> NDArray[Any]:
    """The array of a smallNORB file: type, number of axes, at least three sizes, values; little-endian."""
    data = read_file(path, "smallnorb")
    code = int.from_bytes(data[:4], "little")
    num_axes = int.from_bytes(data[4:8], "little")
    if code not in MATRIX_TYPES or not 1 <= num_axes <= 8:
        problem = (
            f"should begin with one of {', '.join(map(hex, MATRIX_TYPES))} and its axes, but begins with"
        )
        raise DamagedFileError(path, f"{problem} {data[:8].hex(' ') or 'nothing'}", "smallnorb")
    header = 8 + 4 * max(3, num_axes)
    shape = [int.from_bytes(data[at : at + 4], "little") for at in range(8, 8 + 4 * num_axes, 4)]
    kind = np.dtype(MATRIX_TYPES[code]).newbyteorder("<")
    check_length(data, header + math.prod(shape) * kind.itemsize, path, "smallnorb")
    return np.frombuffer(data, kind, offset=header).reshape(shape).copy()


def _read_part(data_dir: Path, split: Split, part: str) -> tuple[Path, NDArray[Any]]:
    path = find_file(SMALLNORB, f"{STEMS[split]}-{part}.mat.gz", data_dir)
    return path, read_matrix(path)


def _check_rows(path: Path, table: NDArray[Any], shape: tuple[int, ...]) -> None:
    if table.dtype != np.int32 or table.shape != shape:
        problem = f"should hold int32 of shape {shape}, but holds {table.dtype} {table.shape}"
        raise DamagedFileError(path, problem, "smallnorb")


def _remote(split: Split, part: str, size: int, sha256: str, md5: str) -> RemoteFile:
    name = f"{STEMS[split]}-{part}.mat.gz"
    url = f"https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/{name}"
    return RemoteFile(f"smallnorb/{name}", url, size, sha256, md5, split)


SMALLNORB = DATASETS.register("smallnorb")(
    DatasetInfo(
        name="smallnorb",
        title="smallNORB stereo pairs of toys",
        channels=2,
        height=96,
        width=96,
        classes=("animal", "human", "airplane", "truck", "car"),
        mean=(0.752, 0.752),  # approximate: the publisher gives none, and the files were not at hand
        std=(0.177, 0.177),
        num_train=24_300,
        num_test=24_300,
        licence="research use with citation (LeCun, Huang and Bottou, 2004)",
        reader=read_smallnorb,
        files=(
            _remote(
                "train",
                "dat",
                131_896_188,
                "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873",
                "66054832f9accfe74a0f4c36a75bc0a2",
            ),
            _remote(
                "train",
                "cat",
                348,
                "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa",
                "23c8b86101fbf0904a000b43d3ed2fd9",
            ),
            _remote(
                "train",
                "info",
                71_052,
                "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32",
                "51dee1210a742582ff607dfd94e332e3",
            ),
            _remote(
                "test",
                "dat",
                130_799_817,
                "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474",
                "e4ad715691ed5a3a5f138751a4ceb071",
            ),
            _remote(
                "test",
                "cat",
                347,
                "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff",
                "5aa791cd7e6016cf957ce9bdb93b8603",
            ),
            _remote(
                "test",
                "info",
                10_428,
                "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2",
                "a9454f3864d7fd4bb3ea7fc3eb84924e",
            ),
        ),
        folders=("smallnorb", "smallNORB", "SmallNORB", "smallnorb/raw", "norb-v1.0-small", "."),
    )
)
