"""Checkpoints of a run: tensors and plain values that load without unpickling anything else."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NotRequired, cast

import torch
from torch import Tensor

from torchcaps.core import MissingDataError, Plain, UserError, first_line
from torchcaps.storage import write_atomically

from ..averaging import AverageState
from ..run import RunPart

_REQUIRED = {"model", "optimizer", "schedule", "technique", "progress", "rows"}


class SessionState(AverageState):
    """What a checkpoint holds of a session."""

    model: dict[str, Tensor]
    optimizer: Plain
    schedule: Plain
    technique: Plain


class Checkpoint(SessionState):
    """All that a run needs to go on."""

    progress: Plain
    rows: list[Plain]  # of metrics.jsonl
    precision: NotRequired[str]
    images: NotRequired[tuple[int, int]]  # that train and validate
    parts: NotRequired[list[RunPart]]  # where each was trained


def save_checkpoint(path: Path, state: Checkpoint) -> None:
    """Write tensors and plain values, so that they load without unpickling anything else."""

    def fill(draft: Path) -> None:
        try:
            with draft.open("wb") as file:
                torch.save(state, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # PyTorch hides a full disk behind an error of its own
                raise error.__context__ from None
            raise

    write_atomically(path, fill)


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """What `save_checkpoint` wrote; a damaged file is an error that says how to go on."""
    if not path.is_file():
        raise MissingDataError(f"no checkpoint at {path}")
    try:
        _check_sums(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a damaged pickle
            content = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # a damaged file raises errors of many classes
        message = first_line(error).partition(". ")[0] or "it ends too early"
        raise UserError(
            f"checkpoint {path} is damaged ({message}); delete it to start this run anew"
        ) from error
    if not isinstance(content, dict) or not content.keys() >= _REQUIRED:
        raise UserError(f"{path} is not the checkpoint of a run; delete it to start this run anew")
    lists = content["rows"], content.get("parts", [])
    if not all(map(_are_rows, lists)) or not _are_counts(content.get("images", (0, 0))):
        raise UserError(
            f"checkpoint {path} does not fit this run (its epochs or its counts of images are damaged); "
            "delete it to start this run anew"
        )
    return cast(Checkpoint, content)


def _check_sums(path: Path) -> None:
    """Raise where bytes are not those that were written: PyTorch does not compare the checksums."""
    with zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():
            raise ValueError(f"the checksum of {damaged} is wrong")


def _are_rows(rows: object) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _are_counts(images: object) -> bool:
    return isinstance(images, tuple) and [type(count) for count in images] == [int, int]


@contextmanager
def described_damage(path: Path) -> Iterator[None]:
    """While open, contents that do not fit the run raise an error that says how to go on."""
    try:
        yield
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"checkpoint {path} does not fit this run ({first_line(error)}); delete it to start this run anew"
        ) from error
