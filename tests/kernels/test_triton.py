"""The Triton kernels: in the interpreter where there is no GPU."""

import pytest

from kernels.interpreter import run_interpreted


@pytest.mark.slow
@pytest.mark.parametrize("marks", ["not slow", "slow"])
def test_interpreted_kernels_agree_with_their_references(marks):
    pytest.importorskip("triton")
    run = run_interpreted(marks)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
