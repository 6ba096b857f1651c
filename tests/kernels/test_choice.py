"""The rule by which `backend="auto"` chooses on a CPU, against the times that were measured."""

import json
import re
from pathlib import Path

import pytest
import torch

from torchcaps.kernels import dynamic_unsupported_reason

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "routing--cpu.json"
SPREAD = 1.1  # times that differ less are the same


def pairs():
    """The milliseconds of both backends for each measured size of dynamic routing."""
    found = {}
    for row in json.loads(MEASURED.read_text())["rows"]:
        if row["routing"] == "dynamic" and row["ms"]:
            found.setdefault((row["case"], row["batch"], row["curve"]), {})[row["backend"]] = row["ms"]
    return [(case, batch, times) for (case, batch, _), times in found.items() if len(times) == 2]


@pytest.mark.parametrize(("case", "batch", "times"), pairs())
def test_auto_takes_the_faster_path(case, batch, times):
    in_caps, in_pose, out_caps, pose = map(int, re.match(r"(\d+)x(\d+) -> (\d+)x(\d+)", case).groups())
    poses = torch.zeros(1).expand(batch, in_caps, in_pose)
    weight = torch.zeros(1).expand(in_caps, in_pose, out_caps, pose)
    chosen = "torch" if dynamic_unsupported_reason(poses, weight, insist=False) else "fused"
    assert times[chosen] <= SPREAD * min(times.values())
