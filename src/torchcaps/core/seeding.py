"""Independent random streams from one seed, so that a run can be replayed from any epoch."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SEEDING = threading.Lock()  # layers draw their first weights from one generator, which threads share


def digest_of(text: str) -> bytes:
    """Eight bytes that depend on a text alone: names sorted by them are in one random order everywhere."""
    encoded = text.encode(errors="surrogateescape")  # the name of a file may be in no encoding at all
    return hashlib.blake2b(encoded, digest_size=8).digest()


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, such as `derive_seed(42, "order", epoch)`; others get unrelated ones."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(digest_of(text), "big") >> 1


def generator(seed: int, *purpose: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator on `device`, seeded for one purpose."""
    return torch.Generator(device).manual_seed(derive_seed(seed, *purpose))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While open, weights of new layers follow from `seed`; other threads wait before they seed any.

    Afterwards the generator that all layers share goes on from where it is.
    """
    with _SEEDING:
        torch.manual_seed(seed)
        yield
