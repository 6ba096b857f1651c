"""Triton kernels of a convolution without padding: products of 16-bit tiles with sums in float32.

Maps are `[batch, height, width, channels]` and kernels `[out, SIDE, SIDE, channels]` in memory, so that the
values that one row of a kernel meets lie side by side. `STEP` divides the channels.
"""

# ruff: noqa: ANN001, ANN201, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def convolve_kernel(
    maps,
    weight,
    partial,
    places,
    height,
    width,
    rows,
    columns,
    steps,
    C: tl.constexpr,
    OUT: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
    PLACES: tl.constexpr,
    CHANNELS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Program (tile of places and out channels, slot): its slot's share of the sum over a window."""
    tiles = tl.cdiv(OUT, CHANNELS)
    place = tl.program_id(0) // tiles * PLACES + tl.arange(0, PLACES)
    channel = tl.program_id(0) % tiles * CHANNELS + tl.arange(0, CHANNELS)
    value = tl.arange(0, STEP)
    is_place, is_channel = place < places, channel < OUT
    sample, row, column = place // (rows * columns), place // columns % rows, place % columns
    corner = ((sample.to(tl.int64) * height + row * STRIDE) * width + column * STRIDE) * C
    kernel = channel * (SIDE * SIDE * C)
    of_row: tl.constexpr = SIDE * C // STEP
    first = tl.program_id(1) * steps
    total = tl.zeros((PLACES, CHANNELS), tl.float32)
    for step in range(first, tl.minimum(first + steps, SIDE * of_row)):
        seen = corner + (step // of_row) * (width * C) + step % of_row * STEP
        window = tl.load(maps + seen[:, None] + value[None, :], mask=is_place[:, None], other=0.0)
        learnt = tl.load(
            weight + kernel[None, :] + step * STEP + value[:, None], mask=is_channel[None, :], other=0.0
        )
        total = tl.dot(window, learnt, total)
    slot = tl.program_id(1).to(tl.int64) * places
    where = (slot + place)[:, None] * OUT + channel[None, :]
    tl.store(partial + where, total, mask=is_place[:, None] & is_channel[None, :])


@triton.jit(do_not_specialize=["slots"])
@no_type_check
def add_slots_kernel(
    partial, bias, result, numbers, slots, OUT: tl.constexpr, SIZE: tl.constexpr, BIAS: tl.constexpr
):
    """The sum over the slots, plus the bias of the channel."""
    number = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    exists = number < numbers
    total = tl.zeros((SIZE,), tl.float32)
    for slot in range(slots):
        total += tl.load(partial + slot * numbers.to(tl.int64) + number, mask=exists, other=0.0)
    if BIAS:
        total += tl.load(bias + number % OUT, mask=exists, other=0.0).to(tl.float32)
    tl.store(result + number, total.to(result.dtype.element_ty), mask=exists)


@triton.jit
@no_type_check
def grad_maps_kernel(
    grad,
    weight,
    grad_maps,
    order,
    batch,
    height,
    width,
    rows,
    columns,
    C: tl.constexpr,
    OUT: tl.constexpr,
    SIDE: tl.constexpr,
    STRIDE: tl.constexpr,
    SAMPLES: tl.constexpr,
    CHANNELS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Program (place of the map and tile of channels, tile of samples): their gradient.

    All samples of a place are met by the same values of the kernels, so that none is multiplied with nothing.
    """
    tiles = tl.cdiv(C, CHANNELS)
    place = tl.load(order + tl.program_id(0) // tiles)
    channel = tl.program_id(0) % tiles * CHANNELS + tl.arange(0, CHANNELS)
    sample = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    value = tl.arange(0, STEP)
    is_sample, is_channel = sample < batch, channel < C
    y, x = place // width, place % width
    first_row, last_row = tl.maximum(0, (y - SIDE + STRIDE) // STRIDE), tl.minimum(rows - 1, y // STRIDE)
    first, last = tl.maximum(0, (x - SIDE + STRIDE) // STRIDE), tl.minimum(columns - 1, x // STRIDE)
    across = last - first + 1
    of_place: tl.constexpr = OUT // STEP
    sees = sample.to(tl.int64) * (rows * columns)
    total = tl.zeros((SAMPLES, CHANNELS), tl.float32)
    for step in range((last_row - first_row + 1) * across * of_place):
        row, column = first_row + step // of_place // across, first + step // of_place % across
        out = step % of_place * STEP + value
        incoming = tl.load(
            grad + (sees + row * columns + column)[:, None] * OUT + out[None, :],
            mask=is_sample[:, None],
            other=0.0,
        )
        tap = (out * SIDE + y - row * STRIDE) * SIDE + x - column * STRIDE
        learnt = tl.load(weight + tap[:, None] * C + channel[None, :], mask=is_channel[None, :], other=0.0)
        total = tl.dot(incoming, learnt, total)
    where = (sample.to(tl.int64) * (height * width) + place)[:, None] * C + channel[None, :]
    tl.store(
        grad_maps + where,
        total.to(grad_maps.dtype.element_ty),
        mask=is_sample[:, None] & is_channel[None, :],
    )


@triton.jit
@no_type_check
def grad_bias_kernel(
    grad, partial, places, of_slot, OUT: tl.constexpr, PLACES: tl.constexpr, CHANNELS: tl.constexpr
):
    """Program (slot, tile of channels): the sum of the gradient over the slot's places."""
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    first = tl.program_id(0) * of_slot
    total = tl.zeros((PLACES, CHANNELS), tl.float32)
    for start in range(first, tl.minimum(first + of_slot, places), PLACES):
        place = start + tl.arange(0, PLACES)
        mask = (place < tl.minimum(first + of_slot, places))[:, None] & (channel < OUT)[None, :]
        where = place.to(tl.int64)[:, None] * OUT + channel[None, :]
        total += tl.load(grad + where, mask=mask, other=0.0).to(tl.float32)
    tl.store(partial + tl.program_id(0) * OUT + channel, tl.sum(total, 0), mask=channel < OUT)
