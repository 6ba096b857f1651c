"""How many levels couplings are rounded to when nobody says."""

from __future__ import annotations

_STEPS = 10  # of the thesis, which takes 11 levels


def even_levels(parents: int) -> int:
    """The number of levels k / (levels - 1) nearest to 11 that has the even share 1 / parents as a level.

    Ten parents have 11 levels, 16 have 17 and 7 have 8. An even split is then its own rounding.
    """
    return parents * max(1, int(_STEPS / parents + 0.5)) + 1
