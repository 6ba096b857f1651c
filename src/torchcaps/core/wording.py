"""Counts in sentences."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """A number of things, as "1 patient" or "1,200 patients"; `thing` is one of them."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
