"""`torchcaps lung segment` on a drawn scan: `python benchmarks/lung_scan.py RUN FILE [SLICES]`.

Draws a chest of 300 (or SLICES) slices of 512x512 pixels, all through the lungs, as a DICOM series, and runs
the command on the CPU in a process of its own, as a person would. Its wall time and resident memory become a
row of FILE, such as `benchmarks/results/segmentation--cpu.json`, whose other rows stay.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from itertools import pairwise
from pathlib import Path

import torch

from torchcaps.apps.lung.phantom import Protocol, write_phantom
from torchcaps.storage import write_json
from torchcaps.train.run import device_name, provenance

SIDE, SLICES, LUNG_HEIGHT = 512, 300, 240.0  # pixels, slices, and mm from the lowest to the highest slice
PAUSE = 0.2  # seconds between two looks at the memory
QUARTERS = 4
MIB = 1 << 20


def main(run, file, slices=SLICES):
    protocol = Protocol(size=SIDE, slices=slices, thickness=max(0.5, min(2.5, LUNG_HEIGHT / slices)))
    with tempfile.TemporaryDirectory() as folder:
        (series,) = write_phantom(Path(folder) / "scan", 1, protocol=protocol)
        out = Path(folder) / "found"
        seconds, memory = watch(
            ["lung", "segment", series, "--run", run, "--out", out, "--device", "cpu", "-q"]
        )
        found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    row = row_of(found, slices, seconds, memory)
    add_row(file, row)
    print(json.dumps(row, indent=1), f"{seconds / 60:.2f} minutes, {len(found['nodules'])} nodules", sep="\n")


def watch(arguments):
    """Seconds that a torchcaps command takes, and its resident bytes at each look."""
    started, memory = time.perf_counter(), []
    command = [sys.executable, "-m", "torchcaps", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            memory.append(resident_bytes(process.pid))
            time.sleep(PAUSE)
    if process.returncode:
        sys.exit(f"torchcaps {' '.join(command[3:5])} failed; its message stands above")
    return time.perf_counter() - started, memory


def resident_bytes(process):
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def row_of(found, slices, seconds, memory):
    """The fields of `benchmarks/README.md`; `quarters_mb` is the peak in each quarter of the time."""
    facts = provenance(torch.device("cpu"))
    ends = [len(memory) * number // QUARTERS for number in range(QUARTERS + 1)]
    quarters = [max(memory[begin:end]) for begin, end in pairwise(ends)]
    return {
        "suite": "segmentation",
        "case": f"lung segment, {slices} drawn slices of {SIDE} px, whole command",
        "backend": "fused",
        "device": device_name(torch.device("cpu")),
        "batch": slices,
        "ms": round(1000 * seconds),
        "spread": 0.0,
        "img_s": round(slices / seconds, 2),
        "peak_mb": round(max(memory) / MIB, 1),
        "quarters_mb": [round(each / MIB, 1) for each in quarters],
        "torch": torch.__version__,
        "commit": facts["commit"],
        "model": found["model"],
        "pass": "scan",
        "repeats": 1,
    }


def add_row(file, row):
    """Put the row into the file, in the place of one of the same name."""
    content = json.loads(file.read_text(encoding="utf-8"))
    names = ("suite", "case", "backend", "batch")
    content["rows"] = [old for old in content["rows"] if any(old[name] != row[name] for name in names)]
    content["rows"].append(row)
    write_json(file, content)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("file", type=Path)
    parser.add_argument("slices", type=int, nargs="?", default=SLICES)
    given = parser.parse_args()
    if not given.file.is_file():
        parser.error(f"{given.file} does not exist; torchcaps bench segmentation --out {given.file} makes it")
    main(given.run, given.file, given.slices)
