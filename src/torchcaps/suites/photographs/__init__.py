"""Drawn photographs of the test digits: which are read right, which are refused, and which are misread."""

from .camera import take_photograph
from .conditions import EMPTY, GROUPS, mixed
from .measure import DIGITS, measure_photographs
from .pen import Written, trace
from .scene import Chance, Scene, draw_chance

__all__ = [
    "DIGITS",
    "EMPTY",
    "GROUPS",
    "Chance",
    "Scene",
    "Written",
    "draw_chance",
    "measure_photographs",
    "mixed",
    "take_photograph",
    "trace",
]
