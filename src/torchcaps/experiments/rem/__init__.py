"""Chapter 6, REM, and beyond: the runs behind its tables and figures, and what they say of its claims."""

from . import decoder, entropy, figures, groups, saliency, tables, trees, typicality

__all__ = ["decoder", "entropy", "figures", "groups", "saliency", "tables", "trees", "typicality"]
