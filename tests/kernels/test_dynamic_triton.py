"""The Triton kernels: in the interpreter where there is no GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_interpreted_kernels_agree_with_the_textbook_loop():
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", str(HERE / "interpreted_dynamic.py")]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
