"""The exponential function of a row of numbers, compiled for the processor."""

from math import floor
from typing import no_type_check  # numba compiles no function that run-time shape checks have wrapped

import numpy as np

from .compiling import compiled

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_LEAST_EXPONENT = np.float32(-87.0)  # of a normal float32; what lies below counts as much as nothing
_TAYLOR = tuple(
    np.float32(each)  # of exp(r) - 1 - r over r squared, |r| <= ln(2)/2 (Cephes, expf), highest power first
    for each in (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
)
_ONE, _HALF = np.float32(1), np.float32(0.5)


@compiled
@no_type_check
def exponentiate(numbers, count):
    """Raises e to numbers of at most 0, in their place; the library's function would take them one by one."""
    powers = np.empty(count, np.int32)
    for spot in range(count):
        x = numbers[spot]
        x = _LEAST_EXPONENT if x < _LEAST_EXPONENT else x  # not a number stays what it is
        whole = np.float32(floor(x * _LOG2_E + _HALF))
        rest = x - whole * _LN2_HIGH - whole * _LN2_LOW
        series = _TAYLOR[0]
        for power in range(1, 6):
            series = series * rest + _TAYLOR[power]
        numbers[spot] = series * rest * rest + rest + _ONE
        powers[spot] = (np.int32(whole) + np.int32(127)) << np.int32(23)  # the bits of two to this power
    scale = powers.view(np.float32)
    for spot in range(count):
        numbers[spot] *= scale[spot]
