"""The commands that take finished runs: measure, ask, look inside, make smaller, export."""

from . import evaluate, explain, explorer, export, parse, predict, prune, shrink
from .evaluate import show_result

__all__ = [
    "evaluate",
    "explain",
    "explorer",
    "export",
    "parse",
    "predict",
    "prune",
    "show_result",
    "shrink",
]
