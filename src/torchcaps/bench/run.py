"""Runs a suite by its name and writes its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from torchcaps.core import UserError, unknown_name

from .bench import Bench, Measurement
from .filter import filter_suite
from .layer import routing_suite
from .model import model_suite
from .partwhole import partwhole_suite
from .render import render_suite
from .roofline import measure_ceilings
from .row import BenchResults, BenchRow, read_rows
from .segmentation import segmentation_suite
from .step import train_suite
from .timing import Effort

SUITES: dict[str, Callable[..., Iterator[Measurement]]] = {
    "routing": routing_suite,
    "train": train_suite,
    "models": model_suite,
    "segmentation": segmentation_suite,
    "render": render_suite,
    "filter": filter_suite,
    "partwhole": partwhole_suite,
}


def run_bench(
    suite: str,
    device: torch.device,
    *,
    quick: bool = False,
    file: Path | None = None,
    minutes: float | None = None,
    goes_on: bool = False,
    on_row: Callable[[BenchRow], None] | None = None,
    **settings: Any,
) -> BenchResults:
    """Measure a suite, and return provenance, ceilings and one row a measurement.

    Args:
        suite: One of `SUITES`.
        device: Where to measure.
        quick: Fewer cases and repeats.
        file: Rewritten after each row.
        minutes: No measurement begins after so many.
        goes_on: Rows in the file are kept; those of this commit and device are not measured again.
        on_row: Called with each row.
        settings: Of the suite, such as `compiled` of `routing`.
    """
    if suite not in SUITES:
        raise unknown_name("suite", suite, SUITES)
    if minutes is not None and minutes <= 0:
        raise UserError(f"minutes must be positive, got {minutes}")
    if goes_on and file is None:
        raise UserError("--continue keeps the rows of a file: name it with --out")
    before = read_rows(file) if goes_on and file and file.is_file() else []
    bench = Bench(
        suite,
        device,
        ceilings=measure_ceilings(device),
        effort=Effort.usual(device, quick=quick),
        file=file,
        minutes=minutes,
        on_row=on_row,
    )
    return bench.run(SUITES[suite](bench, quick=quick, **settings), before)
