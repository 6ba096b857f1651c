"""The memory that work needs beyond what was in use before."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

import torch

MIB = 1 << 20
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """The highest use of memory since it was made, beyond the use at that moment.

    On a GPU this is what PyTorch's allocator handed out. On a CPU it is the resident size of the process,
    whose high-water mark Linux can reset; elsewhere the mark of the whole run, a lower bound, and nothing on
    Windows.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        release_memory(device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self._before: int | None = torch.cuda.memory_allocated(device)
        else:
            _reset_high_water_mark()
            self._before = _high_water_mark()

    def mebibytes(self) -> float | None:
        """The peak so far, in units of 2**20 bytes; None where the system does not tell."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            return (torch.cuda.max_memory_allocated(self.device) - (self._before or 0)) / MIB
        now = _high_water_mark()
        return None if now is None or self._before is None else max(now - self._before, 0) / MIB


def release_memory(device: torch.device) -> None:
    """Free memory that nothing refers to, so that the next work has to allocate its own."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return


def free_memory(device: torch.device) -> int | None:
    """Bytes that can still be allocated; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return _kibibytes(Path("/proc/meminfo"), "MemAvailable") * 1024
    except (OSError, LookupError):
        return None


def _reset_high_water_mark() -> None:
    try:
        _RESET.write_text("5", encoding="utf-8")
    except OSError:  # not Linux, or not allowed
        return


def _high_water_mark() -> int | None:
    with suppress(OSError, LookupError):
        return _kibibytes(_STATUS, "VmHWM") * 1024
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _kibibytes(file: Path, key: str) -> int:
    lines = dict(line.split(":", 1) for line in file.read_text(encoding="utf-8").splitlines() if ":" in line)
    return int(lines[key].split()[0])
