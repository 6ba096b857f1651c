"""Beyond chapter 6: the demonstration, entropy as an objective, pruning whole capsules, strange images."""

from . import demo, entropy, groups, typicality

__all__ = ["demo", "entropy", "groups", "typicality"]
