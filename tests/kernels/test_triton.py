"""The Triton kernels: in the interpreter where there is no GPU."""

import pytest

from kernels.interpreter import run_interpreted


@pytest.mark.slow
@pytest.mark.parametrize("marks", ["not slow", "slow"])
def test_interpreted_kernels_agree_with_their_references(marks):
    pytest.importorskip("triton")
    run = run_interpreted(marks)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]


def _signature(kernel, **types):
    """Pointers to float32 for all arguments but sizes, which are integers, and constants."""
    names = [parameter.name for parameter in kernel.params if not parameter.is_constexpr]
    integers = {"count", "samples", "num_in", "G"}
    return {name: types.get(name, "i32" if name in integers else "*fp32") for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("flag", [False, True])
def test_kernels_compile_for_a_gpu_that_is_not_here(flag):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from torchcaps.kernels.self_attention import kernels as attention
    from torchcaps.kernels.squashed import kernels as squashed

    poses = {"P": 8, "ROWS": 128, "POSE": 8, "EXPONENTIAL": flag}
    layer = {"J": 10, "P": 16, "IN": 16, "OUT": 16, "POSE": 16, "PRIOR": flag}
    half = "*bf16" if flag else "*fp32"
    for kernel, constants in (
        (squashed.squash_poses_kernel, poses),
        (squashed.squash_poses_grad_kernel, poses),
        (attention.attend_kernel, layer),
        (attention.attend_grad_kernel, layer),
    ):
        types = {"poses": half, "grad_poses": half} if constants is poses else {}
        source = ASTSource(kernel, _signature(kernel, **types), constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        assert kernel.__name__ in compiled.asm["ptx"]
