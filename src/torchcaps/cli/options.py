"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the datasets; else TORCHCAPS_DATA is used.")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that torchcaps train wrote.")]
LevelsOption = Annotated[
    str,
    typer.Option(
        "--levels", help="Levels of quantized couplings; one number, or one per routed layer: 11,6."
    ),
]


def is_first_process() -> bool:
    """Whether this process speaks for all that train together; torchrun and Fabric number them."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"


def choose_device(name: str) -> str:
    """The device to compute on; "auto" prefers a GPU."""
    import torch

    from torchcaps.train import Machine, check_machine

    check_machine(Machine(device=name))
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


def read_levels(text: str) -> int | list[int]:
    """Levels from an option: one number for all layers, or several with commas between."""
    from torchcaps.core.errors import UserError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UserError(f"--levels takes whole numbers such as 11 or 11,6, got {text!r}") from error
    return numbers[0] if len(numbers) == 1 else numbers
