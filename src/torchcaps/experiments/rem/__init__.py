"""Chapter 6, REM, and beyond: the runs behind its tables and figures, and what they say of its claims."""

from . import beyond, decoder, figures, saliency, tables, trees
from .tables import CHAPTER

__all__ = ["CHAPTER", "beyond", "decoder", "figures", "saliency", "tables", "trees"]
