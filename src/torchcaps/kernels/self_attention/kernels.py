"""Triton kernels of self-attention routing: a program takes one sample and walks over its children twice.

With `S_j` the sum of all votes for parent j, child i gives it `c_ij = softmax_j(v_ij . S_j / sqrt(P))` plus a
prior, and `s_j = sum_i c_ij v_ij`. The first walk finds S, the second s; backwards, the first walk finds
`dL/dS`, the second writes `dL/dv`. Votes are `[G, samples, N, J, P]`, as one product for each of G matrices
writes them: child i is the (i // G)-th of those that share matrix i % G. Arithmetic is float32.
"""

# ruff: noqa: ANN001, ANN201, ANN202, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl

from ..squash_kernels import squash_exponential, squash_exponential_grad, with_lengths_grad


@triton.jit
@no_type_check
def _parents(sample, J: tl.constexpr, P: tl.constexpr, OUT: tl.constexpr, POSE: tl.constexpr):
    """Places inside `[J, P]`, inside `[samples, J, P]`, and their mask."""
    out, number = tl.arange(0, OUT), tl.arange(0, POSE)
    inside = out[:, None] * P + number[None, :]
    return inside, sample * (J * P) + inside, (out < J)[:, None] & (number < P)[None, :]


@triton.jit
@no_type_check
def _votes(
    votes, start, sample, samples, num_in, inside, mask, G, J: tl.constexpr, P: tl.constexpr, IN: tl.constexpr
):
    """Votes of the next IN children `[IN, OUT, POSE]`, where they lie, and their mask."""
    child = start + tl.arange(0, IN)
    row = (child % G).to(tl.int64) * samples * (num_in // G) + sample * (num_in // G) + child // G
    place = row[:, None, None] * (J * P) + inside[None, :, :]
    exists = (child < num_in)[:, None, None] & mask[None, :, :]
    return tl.load(votes + place, mask=exists, other=0.0), place, exists


@triton.jit
@no_type_check
def _add(total, lost, more):
    """`total + more`, and what rounding loses of it (Kahan): thousands of children cost no digits."""
    more -= lost
    grown = total + more
    return grown, (grown - total) - more


@triton.jit
@no_type_check
def _shares(vote, total, P: tl.constexpr, J: tl.constexpr, OUT: tl.constexpr):
    """Softmax over parents of the agreement of each vote with the sum of all, `[IN, OUT]`."""
    logits = tl.sum(vote * total[None, :, :], 2) / tl.sqrt(P * 1.0)
    logits = tl.where((tl.arange(0, OUT) < J)[None, :], logits, float("-inf"))
    shares = tl.exp(logits - tl.max(logits, 1)[:, None])
    return shares / tl.sum(shares, 1)[:, None]


@triton.jit
@no_type_check
def _pairs(start, num_in, J: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr):
    """Places of pairs of child and parent inside `[num_in, J]`, and their mask."""
    child, out = start + tl.arange(0, IN), tl.arange(0, OUT)
    return child[:, None] * J + out[None, :], (child < num_in)[:, None] & (out < J)[None, :]


@triton.jit
@no_type_check
def attend_kernel(
    votes,
    prior,
    poses,
    lengths,
    coupling,
    totals,
    pooled,
    samples,
    num_in,
    G,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    PRIOR: tl.constexpr,
):
    """Parents, their lengths and the couplings; `S` and `s` are kept for the backward pass."""
    sample = tl.program_id(0).to(tl.int64)
    inside, parent, mask = _parents(sample, J, P, OUT, POSE)
    total, lost = tl.zeros((OUT, POSE), tl.float32), tl.zeros((OUT, POSE), tl.float32)
    for start in range(0, num_in, IN):
        vote, _, _ = _votes(votes, start, sample, samples, num_in, inside, mask, G, J, P, IN)
        total, lost = _add(total, lost, tl.sum(vote, 0))
    result, lost = tl.zeros((OUT, POSE), tl.float32), tl.zeros((OUT, POSE), tl.float32)
    for start in range(0, num_in, IN):
        vote, _, _ = _votes(votes, start, sample, samples, num_in, inside, mask, G, J, P, IN)
        share = _shares(vote, total, P, J, OUT)
        pair, exists = _pairs(start, num_in, J, IN, OUT)
        if PRIOR:
            share += tl.load(prior + pair, mask=exists, other=0.0)
        tl.store(coupling + sample * num_in * J + pair, share, mask=exists)
        result, lost = _add(result, lost, tl.sum(share[:, :, None] * vote, 0))
    tl.store(totals + parent, total, mask=mask)
    tl.store(pooled + parent, result, mask=mask)
    short = squash_exponential(result)
    tl.store(poses + parent, short, mask=mask)
    out = tl.arange(0, OUT)
    tl.store(lengths + sample * J + out, tl.sqrt(tl.sum(short * short, 1)), mask=out < J)


@triton.jit
@no_type_check
def _incoming(grad_poses, grad_lengths, pooled, sample, parent, mask, J: tl.constexpr, OUT: tl.constexpr):
    """`dL/ds` from the gradients of the parents and of their lengths."""
    value = tl.load(pooled + parent, mask=mask, other=0.0)
    short = squash_exponential(value)
    out = tl.arange(0, OUT)
    along = tl.load(grad_lengths + sample * J + out, mask=out < J, other=0.0)
    grad = tl.load(grad_poses + parent, mask=mask, other=0.0)
    return squash_exponential_grad(value, with_lengths_grad(short, grad, along, 1))


@triton.jit
@no_type_check
def _grad_logits(vote, share, grad, P: tl.constexpr):
    """`dL/dc_ij = v_ij . g_j`, and `dL/dv_ij` over `S_j`: what softmax makes of that, over `sqrt(P)`."""
    grad_coupling = tl.sum(vote * grad[None, :, :], 2)
    mean = tl.sum(share * grad_coupling, 1)
    return grad_coupling, share * (grad_coupling - mean[:, None]) / tl.sqrt(P * 1.0)


@triton.jit
@no_type_check
def attend_grad_kernel(
    votes,
    coupling,
    totals,
    pooled,
    grad_poses,
    grad_lengths,
    grad_votes,
    grad_coupling,
    samples,
    num_in,
    G,
    J: tl.constexpr,
    P: tl.constexpr,
    IN: tl.constexpr,
    OUT: tl.constexpr,
    POSE: tl.constexpr,
    PRIOR: tl.constexpr,
):
    """Gradients of the votes and, with a prior, of each sample's couplings."""
    sample = tl.program_id(0).to(tl.int64)
    inside, parent, mask = _parents(sample, J, P, OUT, POSE)
    total = tl.load(totals + parent, mask=mask, other=0.0)
    grad = _incoming(grad_poses, grad_lengths, pooled, sample, parent, mask, J, OUT)
    grad_total, lost = tl.zeros((OUT, POSE), tl.float32), tl.zeros((OUT, POSE), tl.float32)
    for start in range(0, num_in, IN):
        vote, _, _ = _votes(votes, start, sample, samples, num_in, inside, mask, G, J, P, IN)
        _, slope = _grad_logits(vote, _shares(vote, total, P, J, OUT), grad, P)
        grad_total, lost = _add(grad_total, lost, tl.sum(slope[:, :, None] * vote, 0))
    for start in range(0, num_in, IN):
        vote, place, exists = _votes(votes, start, sample, samples, num_in, inside, mask, G, J, P, IN)
        grad_share, slope = _grad_logits(vote, _shares(vote, total, P, J, OUT), grad, P)
        pair, is_pair = _pairs(start, num_in, J, IN, OUT)
        share = tl.load(coupling + sample * num_in * J + pair, mask=is_pair, other=0.0)
        grad_vote = share[:, :, None] * grad[None, :, :] + slope[:, :, None] * total[None, :, :]
        tl.store(grad_votes + place, grad_vote + grad_total[None, :, :], mask=exists)
        if PRIOR:
            tl.store(grad_coupling + sample * num_in * J + pair, grad_share, mask=is_pair)
