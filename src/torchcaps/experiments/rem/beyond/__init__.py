"""Beyond chapter 6: entropy as an objective, pruning whole capsules, and strange images."""

from . import demo, entropy, groups, typicality

__all__ = ["demo", "entropy", "groups", "typicality"]
