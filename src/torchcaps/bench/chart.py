"""The chart of benchmark results, for the gallery."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.storage import write_bytes
from torchcaps.viz import draw_bench, to_png

from .row import read_rows


def write_chart(files: Sequence[Path], gallery: Path) -> Path:
    """Draw the rows of result files of one device as `<suite>-<device>.png` in `gallery`; return its path."""
    rows = [row for file in files for row in read_rows(file)]
    devices = sorted({row["device"] for row in rows})
    if len(devices) != 1:
        raise UserError(f"a chart is of one device, got {', '.join(devices) or 'no rows'}")
    suites = dict.fromkeys(row["suite"] for row in rows)
    target = gallery / f"{'-'.join(suites)}-{device_slug(devices[0])}.png"
    write_bytes(target, to_png(draw_bench(rows)))
    return target


def device_slug(device: str) -> str:
    """The device in lower case for file names: `h200`, `cpu`."""
    name = device.partition(",")[0].removeprefix("NVIDIA ")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
