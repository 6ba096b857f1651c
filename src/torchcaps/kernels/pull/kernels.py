"""Triton kernels of LOBSTER's pull: each weight is read once and written once.

A launch takes several tensors, one after the other: of all programs, the first ones work on the first tensor.
"""

# ruff: noqa: ANN001, ANN201, ANN202  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _places(program, count, BLOCK: tl.constexpr):
    """Which numbers of a tensor a program takes, and which of them there are."""
    place = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return place, place < count


@triton.jit
@no_type_check
def shrink_kernel(weights, gradients, counts, strength, BLOCK: tl.constexpr):
    """Take `strength * weight * max(0, 1 - |gradient|)` from each weight.

    It rounds after each operation, as operations of PyTorch do: launch it without fused multiply-add.
    """
    share = tl.load(strength)
    program = tl.program_id(0)
    for number in tl.static_range(len(counts)):
        programs = tl.cdiv(counts[number], BLOCK)
        if (program >= 0) & (program < programs):
            place, exists = _places(program, counts[number], BLOCK)
            slope = tl.load(gradients[number] + place, mask=exists, other=0.0)
            weight = tl.load(weights[number] + place, mask=exists, other=0.0)
            insensitive = 1.0 - tl.abs(slope)
            insensitive = tl.where(insensitive < 0.0, 0.0, insensitive)  # what is no number stays none
            tl.store(weights[number] + place, weight - insensitive * weight * share, mask=exists)
        program -= programs


@triton.jit
@no_type_check
def keep_zeros_kernel(weights, masks, counts, BLOCK: tl.constexpr):
    """Multiply each weight by its mask."""
    program = tl.program_id(0)
    for number in tl.static_range(len(counts)):
        programs = tl.cdiv(counts[number], BLOCK)
        if (program >= 0) & (program < programs):
            place, exists = _places(program, counts[number], BLOCK)
            kept = tl.load(masks[number] + place, mask=exists, other=0)
            weight = tl.load(weights[number] + place, mask=exists, other=0.0)
            tl.store(weights[number] + place, weight * kept.to(tl.float32), mask=exists)
        program -= programs
