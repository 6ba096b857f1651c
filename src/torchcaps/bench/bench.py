"""Makes one measurement after another, and writes a row of each as it goes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from torchcaps.core import first_line
from torchcaps.storage import write_json
from torchcaps.train import provenance
from torchcaps.train.run import device_name

from .memory import PeakMemory, free_memory, release_memory
from .roofline import Ceilings, Cost, Precision
from .row import BenchResults, BenchRow
from .timing import Effort, Timing, Work, as_graph, time_work


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measurement to make.

    Args:
        case: What is measured, in words that stay the same between runs.
        backend: How it is computed; `+graph` marks the replay of a CUDA graph.
        batch: Images in one call.
        build: Makes model and inputs, outside of the time, and returns the work.
        images: Images in one call where that is not the batch.
        is_captured_here: The work is to be captured as a CUDA graph and replayed.
        counts_setup: Peak memory includes what `build` allocates and keeps.
        between: Called before each repeat, outside of its time.
        cost: The work that cannot be avoided, asked for after `build`.
        sizes: For the message when memory runs out.
        skip: Why this is not measured.
        facts: More fields of the row.
    """

    case: str
    backend: str
    batch: int
    build: Callable[[], Work]
    images: int | None = None
    is_captured_here: bool = False
    counts_setup: bool = False
    between: Work | None = None
    cost: Callable[[], Cost] | None = None
    precision: Precision = "32"
    effort: Effort | None = None
    sizes: str = ""
    skip: str | None = None
    facts: BenchRow = field(default_factory=BenchRow)


class Bench:
    """One run of one suite: its device and effort, the rows so far, and the file that holds them."""

    def __init__(
        self,
        suite: str,
        device: torch.device,
        *,
        ceilings: Ceilings,
        effort: Effort | None = None,
        file: Path | None = None,
        minutes: float | None = None,
        on_row: Callable[[BenchRow], None] | None = None,
    ) -> None:
        self.suite, self.device, self.ceilings = suite, device, ceilings
        self.effort = effort or Effort.usual(device)
        self.file, self.on_row = file, on_row
        self._ends_at = None if minutes is None else time.monotonic() + 60 * minutes
        self.provenance = _provenance(device)
        self._rows: dict[tuple[object, ...], BenchRow] = {}
        self._last: BenchRow = {}

    @property
    def rows(self) -> list[BenchRow]:
        """All rows, measured now or before."""
        return list(self._rows.values())

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the work of the last row did not fit into memory."""
        return str(self._last.get("error", "")).startswith("out of memory")

    def run(self, measurements: Iterable[Measurement], before: Iterable[BenchRow] = ()) -> BenchResults:
        """Make measurements until they or the minutes end, and return the content of the file.

        Rows of `before` are kept, and not measured again where commit and device are the same.
        """
        self._rows = {_key(row): row for row in before}
        gc.collect()
        gc.freeze()  # modules stay: collecting then looks only at what the measurements made
        try:
            for measurement in measurements:
                if self._ends_at is not None and time.monotonic() >= self._ends_at:
                    break
                empty = self._empty_row(measurement)
                self._last = self._rows.get(_key(empty), {})
                if any(self._last.get(name) != empty[name] for name in ("commit", "device")):
                    self._keep(self.measure(measurement))
        finally:
            gc.unfreeze()
        self._write()
        return self.as_json()

    def as_json(self) -> BenchResults:
        """The content of the file."""
        return {"provenance": self.provenance, "ceilings": self.ceilings.as_json(), "rows": self.rows}

    def _keep(self, row: BenchRow) -> None:
        self._rows[_key(row)] = self._last = row
        self._write()
        if self.on_row is not None:
            self.on_row(row)

    def _write(self) -> None:
        if self.file is not None:
            write_json(self.file, self.as_json())

    def measure(self, measurement: Measurement) -> BenchRow:
        """The row of one measurement; what goes wrong in it is written into the row."""
        row = self._empty_row(measurement)
        if measurement.skip is not None:
            return {**row, "skipped": measurement.skip}
        free = free_memory(self.device)
        try:
            timing, peak = self._time(measurement)
            return {**row, **self._numbers(measurement, timing, peak)}
        except Exception as error:  # a broken measurement is reported and the others go on
            return {**row, "error": _explain(measurement, error, free)}
        finally:
            release_memory(self.device)

    def _time(self, measurement: Measurement) -> tuple[Timing, float | None]:
        whole = PeakMemory(self.device) if measurement.counts_setup else None
        work = measurement.build()
        work()  # compiles kernels and allocates what stays
        peak = whole or PeakMemory(self.device)
        if measurement.is_captured_here:
            work = as_graph(work)
        work()
        reached = peak.mebibytes()
        return time_work(work, self.device, measurement.effort or self.effort, measurement.between), reached

    def _empty_row(self, measurement: Measurement) -> BenchRow:
        return {
            "suite": self.suite,
            "case": measurement.case,
            "backend": measurement.backend,
            "device": self.provenance["device"],
            "batch": measurement.batch,
            "ms": None,
            "spread": None,
            "img_s": None,
            "peak_mb": None,
            "torch": torch.__version__,
            "commit": self.provenance["commit"],
            **measurement.facts,
        }

    def _numbers(self, measurement: Measurement, timing: Timing, peak: float | None) -> BenchRow:
        numbers: BenchRow = {
            "ms": float(f"{timing.ms:.5g}"),
            "spread": round(timing.spread, 4),
            "img_s": round(1000 * (measurement.images or measurement.batch) / timing.ms, 1),
            "peak_mb": None if peak is None else round(peak, 2),
            "repeats": timing.repeats,
        }
        if measurement.cost is None:
            return numbers
        cost = measurement.cost()
        floor = cost.floor_ms(self.ceilings, measurement.precision)
        return {
            **numbers,
            "flops": cost.flops,
            "bytes": cost.bytes,
            "floor_ms": float(f"{floor:.4g}"),
            "share_of_ceiling": float(f"{floor / timing.ms:.4g}"),
        }


def _key(row: BenchRow) -> tuple[object, ...]:
    """The fields that identify a row from run to run."""
    return tuple(row.get(name) for name in ("suite", "case", "backend", "batch", "curve"))


def _explain(measurement: Measurement, error: Exception, free: int | None) -> str:
    words = first_line(error)
    if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in words:
        return f"{type(error).__name__}: {words}"
    had = "" if free is None else f"; {free / 2**30:.1f} GiB were free"
    smaller = max(1, measurement.batch // 4)
    return f"out of memory at batch {measurement.batch} ({measurement.sizes}){had}; try a batch of {smaller}"


def _provenance(device: torch.device) -> dict[str, Any]:
    found = provenance(device)
    try:
        triton: str | None = version("triton")
    except PackageNotFoundError:
        triton = None
    return {
        **found,
        "versions": {**found["versions"], "triton": triton, "cuda": torch.version.cuda},
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }
