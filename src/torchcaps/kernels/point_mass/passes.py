"""The two passes of the filter as Triton kernels; a program works on a part of a row."""

# ruff: noqa: ANN001, ANN201, PLR0913  to Triton an annotation means a compile-time constant
from typing import no_type_check  # Triton takes no kernel that run-time shape checks have wrapped

import triton
import triton.language as tl


@triton.jit
@no_type_check
def move_kernel(
    belief,
    moved,
    sources,  # the headings to move
    x_first,
    x_taps,
    y_first,
    y_taps,
    rows,
    columns,
    scale,
    X: tl.constexpr,
    Y: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Shift and spread a heading along x and y."""
    heading = tl.load(sources + tl.program_id(2)).to(tl.int64)
    row = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane = belief + heading * rows * columns
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(Y):
        source_row = row - tl.load(y_first + heading) - k
        inside = (source_row >= 0) & (source_row < rows)
        part = tl.zeros([BLOCK], tl.float32)
        for n in range(X):
            source = column - tl.load(x_first + heading) - n
            mask = inside & (source >= 0) & (source < columns)
            values = tl.load(plane + source_row * columns + source, mask=mask, other=0.0)
            part += values * tl.load(x_taps + heading * X + n)
        total += part * tl.load(y_taps + heading * Y + k)
    target = moved + (heading * rows + row) * columns + column
    tl.store(target, total * scale, mask=column < columns)


@triton.jit
@no_type_check
def weigh_kernel(
    moved,
    belief,
    kept,  # the headings to weigh
    active,  # which headings were moved
    taps,
    weights,  # of the headings
    stored,
    tables,
    likelihood,
    known,  # which cells are candidates
    sums,
    first,
    headings,
    rows,
    columns,
    PARTS: tl.constexpr,  # components or groups; 0 where there is no image
    CODES: tl.constexpr,  # entries of a group's table; 0 where values are components
    MASKED: tl.constexpr,  # whether some cells are no candidates
    LAST: tl.constexpr,  # the last weight of the likelihood
    T: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Turn and weigh a heading, and sum its part of a row up in float64; sums are in the order of `kept`."""
    heading = tl.load(kept + tl.program_id(2)).to(tl.int64)
    row = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(T):
        source = (heading - first - k + T * headings) % headings
        mask = inside & (tl.load(active + source) != 0)
        values = tl.load(moved + (source * rows + row) * columns + column, mask=mask, other=0.0)
        total += values * tl.load(taps + k)
    total *= tl.load(weights + heading)
    if PARTS > 0:
        dots = tl.zeros([BLOCK], tl.float32)
        for part in range(PARTS):
            at = stored + ((heading * rows + row) * PARTS + part) * columns + column
            values = tl.load(at, mask=inside, other=0)
            if CODES > 0:
                dots += tl.load(tables + part * CODES + values.to(tl.int32), mask=inside, other=0.0)
            else:
                dots += values.to(tl.float32) * tl.load(tables + part)
        place = tl.sqrt(tl.minimum(tl.maximum(2.0 - 2.0 * dots, 0.0), 4.0)) * (LAST / 2)
        low = tl.minimum(place.to(tl.int32), LAST - 1)
        below = tl.load(likelihood + low)
        total *= below + (place - low.to(tl.float32)) * (tl.load(likelihood + low + 1) - below)
        if MASKED:
            total *= tl.load(known + row * columns + column, mask=inside, other=0).to(tl.float32)
    total = tl.where(inside, total, 0.0)
    tl.store(belief + (heading * rows + row) * columns + column, total, mask=inside)
    wide, along = total.to(tl.float64), column.to(tl.float64)
    block = (tl.program_id(2).to(tl.int64) * rows + row) * tl.num_programs(0) + tl.program_id(0)
    tl.store(sums + block * 4, tl.sum(wide))
    tl.store(sums + block * 4 + 1, tl.sum(wide * along))
    tl.store(sums + block * 4 + 2, tl.sum(wide * along * along))
    tl.store(sums + block * 4 + 3, tl.max(total, 0).to(tl.float64))
