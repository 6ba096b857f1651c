"""Beyond chapter 6: the demonstration, entropy as an objective, pruning whole capsules, strange images."""

from . import demo, entropy, groups, on_mnist, typicality

__all__ = ["demo", "entropy", "groups", "on_mnist", "typicality"]
