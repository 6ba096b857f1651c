"""Beyond chapter 6: entropy as an objective, pruning whole capsules, and strange images."""

from . import entropy, groups, typicality

__all__ = ["entropy", "groups", "typicality"]
