"""Images that are made when they are asked for, and those that are read from files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeAlias

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

Indices: TypeAlias = Int64[Tensor, " chosen"] | Sequence[int]


class LazyImages(ABC):
    """Images that are made when they are asked for, indexed like (count, channels, height, width)."""

    dtype = torch.uint8
    ndim = 4
    device: torch.device

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """As of a tensor."""

    @abstractmethod
    def __getitem__(self, indices: Tensor | slice) -> UInt8[Tensor, "chosen channels height width"]: ...

    @abstractmethod
    def to(self, device: torch.device | str) -> LazyImages | Tensor:
        """The same images, made on another device; a tensor where they are made at once."""

    @abstractmethod
    def subset(self, indices: Indices) -> LazyImages:
        """The images at `indices`."""


class FileImages(LazyImages):
    """Images that are read from files when they are asked for.

    Args:
        files: One for each image.
        read: Gives the image in a file as bytes (channels, height, width), the same size for all.
        device: Where images are put.
    """

    def __init__(
        self, files: Sequence[Path], read: Callable[[Path], Tensor], device: torch.device | str = "cpu"
    ) -> None:
        self.files, self.read, self.device = tuple(files), read, torch.device(device)
        self._expected: dict[int, Future[Tensor]] = {}

    def __len__(self) -> int:
        return len(self.files)

    @property
    def shape(self) -> torch.Size:
        """As of a tensor; the first file is read to learn the size."""
        return torch.Size((len(self), *self._read_one(0).shape))

    def expect(self, indices: Tensor) -> None:
        """Begin to read these in the background: they are asked for next."""
        self._expected = {
            number: self._expected.get(number) or _threads().submit(self._read_one, number)
            for number in indices.tolist()
        }

    def __getitem__(self, indices: Tensor | slice) -> UInt8[Tensor, "chosen channels height width"]:
        numbers = range(len(self))[indices] if isinstance(indices, slice) else indices.tolist()
        waiting = [self._expected.get(n) or _threads().submit(self._read_one, n) for n in numbers]
        return torch.stack([future.result() for future in waiting]).to(self.device, non_blocking=True)

    def to(self, device: torch.device | str) -> FileImages:
        """The same images, put on another device when they are read."""
        return FileImages(self.files, self.read, device)

    def subset(self, indices: Indices) -> FileImages:
        """The images at `indices`."""
        chosen = torch.as_tensor(indices).tolist()
        return FileImages([self.files[number] for number in chosen], self.read, self.device)

    def _read_one(self, number: int) -> Tensor:
        return self.read(self.files[number])


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="read-images")  # decoding does not hold up other threads
