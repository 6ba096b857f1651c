"""Where a result was made: versions, commit and device."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import TypedDict

import torch

import torchcaps
from torchcaps.core import counted


class Provenance(TypedDict):
    """Where a result was made."""

    commit: str | None
    versions: dict[str, str]
    device: str


class RunPart(Provenance):
    """Where a run was trained from an epoch on: one that was stopped may go on elsewhere."""

    from_epoch: int


def provenance(device: torch.device) -> Provenance:
    """Versions, commit and device of this process, for every result that is written down."""
    return {
        "commit": source_commit(),
        "versions": {
            "torchcaps": torchcaps.__version__,
            "torch": str(torch.__version__),  # a class of its own, that no checkpoint may hold
            "python": platform.python_version(),
        },
        "device": device_name(device),
    }


def device_name(device: torch.device) -> str:
    """The model of a GPU, or the number of CPU threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {counted(torch.get_num_threads(), 'thread')}"


@cache  # a process keeps the code that it has loaded, whatever is committed meanwhile
def source_commit() -> str | None:
    """The commit of the source tree this package runs from, with `+` if it has changes.

    Where the tree was copied without its history, `TORCHCAPS_COMMIT` says it; else it is None.
    """
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        if not git("ls-files", Path(__file__).name):
            return os.environ.get("TORCHCAPS_COMMIT")  # installed inside somebody else's repository
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("TORCHCAPS_COMMIT")
