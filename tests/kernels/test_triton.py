"""The Triton kernels where there is no GPU: in the interpreter, and through the compiler."""

import pytest

from kernels.interpreter import run_interpreted

_MOST_SPILLED = 32  # bytes of a thread that find no register; 16 at most now
_SHARED = {80: 99 << 10, 90: 227 << 10}  # bytes of a program, on the smallest GPUs since sm_80 and on Hopper


@pytest.mark.slow
@pytest.mark.parametrize("marks", ["not slow", "slow"])
def test_interpreted_kernels_agree_with_their_references(marks):
    pytest.importorskip("triton")
    run = run_interpreted(marks)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("capability", _SHARED)
def test_every_kernel_compiles_for_a_gpu_that_is_not_here(capability):
    pytest.importorskip("triton")
    from kernels.compiled_cases import CASES
    from kernels.compiler import compiling, launched_kernels

    spilling = []
    with compiling(capability, _SHARED[capability]) as compiled:
        for name, call in CASES.items():
            known = len(compiled)
            call()
            spilling += [f"{name}: {each}" for each in compiled[known:] if each.spilled > _MOST_SPILLED]
    assert launched_kernels() - {each.kernel for each in compiled} == set()
    assert spilling == []
    assert [str(each) for each in compiled if each.shared > _SHARED[capability]] == []
    flags: dict[tuple[str, str], set] = {}
    for each in compiled:
        for name, value in each.constants.items():
            if isinstance(value, bool | str):
                flags.setdefault((each.kernel, name), set()).add(value)
    assert {flag: values for flag, values in flags.items() if len(values) < 2} == {}
