"""Independent random streams from one seed, so that a run can be replayed from any epoch."""

from __future__ import annotations

import hashlib

import torch


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
