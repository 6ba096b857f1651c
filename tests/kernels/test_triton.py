"""The Triton kernels: in the interpreter where there is no GPU."""

import pytest

from kernels.interpreter import run_interpreted


@pytest.mark.parametrize("name", ["interpreted_dynamic.py", "interpreted_em.py"])
def test_interpreted_kernels_agree_with_their_reference(name):
    pytest.importorskip("triton")
    run = run_interpreted(name)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["interpreted_dynamic.py", "interpreted_em.py"])
def test_interpreted_kernels_agree_with_their_reference_in_many_shapes(name):
    pytest.importorskip("triton")
    run = run_interpreted(name, "slow")
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
